package gate_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/nethttp"
)

// folded is the subject that Fold makes from the subject of key.
func folded(t testing.TB, key gate.Key, r gate.Request) string {
	t.Helper()
	s, err := gate.Fold(key)(r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, value, want string }{
		{"capitals", "Bob@Example.COM", "bob@example.com"},
		{"the Kelvin sign", "\u212aim", "kim"},
		{"sharp s", "Stra\u00dfe", "strasse"},
		{"capital sharp s", "STRA\u1e9eE", "strasse"},
		{"what it is folded to", "STRASSE", "strasse"},
		{"the sigma at the end", "\u03bf\u03b4\u03cc\u03c2", "\u03bf\u03b4\u03cc\u03c3"},
		{"capital sigma", "\u039f\u0394\u038c\u03a3", "\u03bf\u03b4\u03cc\u03c3"},
		{"composed", "Ren\u00c9", "ren\u00e9"},
		{"decomposed", "RenE\u0301", "ren\u00e9"},
		{"a ligature", "o\ufb03ce", "office"},
		{"dotless i is another letter", "\u0131", "\u0131"},
		{"accents are not ignored", "R\u00e9n\u00e9", "r\u00e9n\u00e9"},
		{"Cherokee, capital", "\u13a0\u13f0", "\u13a0\u13f0"},
		{"Cherokee, small", "\uab70\u13f8", "\u13a0\u13f0"},
		{"composed, in kana", "\u304b\u3099", "\u304c"},
		{"a hieroglyph is no kana", "\U0001304b\u3099", "\U0001304b\u3099"},
		{"nor is one after it a mark", "\u304b\U00013099", "\u304b\U00013099"},
		{"beyond U+FFFF, composed", "\U0001109a", "\U00011099\U000110ba"},
		{"beyond U+FFFF, decomposed", "\U00011099\U000110ba", "\U00011099\U000110ba"},
		{"around such a letter", "E\u0301\U00010400e\u0301", "\u00e9\U00010428\u00e9"},
		{"marks after such a letter, in any order", "\U00010400\u0301\u0323", "\U00010428\u0323\u0301"},
		{"a mark after such a mark", "e\U000110ba\u0301", "e\U000110ba\u0301"},
		{"the same in another order", "\u00e9\U000110ba", "e\U000110ba\u0301"},
		{"bytes that are not UTF-8", "A\xffB\xc3", "a\xffb\xc3"},
		{"such bytes beside letters", "\xfe\u00c9", "\xfe\u00e9"},
		{"half a character", "\xe2\x84", "\xe2\x84"},
	} {
		if got := folded(t, gate.ByHeader("X-User"), with("X-User", c.value)); got != "header:x-user="+c.want {
			t.Errorf("%s: got %+q, want the value %+q", c.name, got, c.want)
		}
	}
}

// TestFoldKeepsKinds: the names of members and parameters are not folded, because they
// are not values.
func TestFoldKeepsKinds(t *testing.T) {
	t.Parallel()
	r := &request{
		peer: netip.MustParseAddrPort("[2001:DB8::1]:1"), query: "Name=\u1e9e",
		route: "/Users/{ID}", params: map[string]string{"ID": "\u212a"},
		values: map[any]any{"user": "\u0338K"}, // U+0338 makes a character of "=" and itself
	}
	byName, byID := gate.ByQuery("Name"), gate.ByParam("ID")
	for _, c := range []struct {
		key  gate.Key
		want string
	}{
		{byName, "query:Name=ss"},
		{byID, "param:ID=k"},
		{gate.ByValue("user", "user"), "user=\u0338k"},
		{gate.ByIP(nil), "ip=2001:db8::/64"},
		{gate.ByRoute(), "route=/users/{id}"},
		{gate.Tag("User", byID), "key:User=param:id=k"},
		{fixed("A=\u212a"), "a=k"},
		// The parts are folded before their lengths are written.
		{gate.Join(byName, byID), "join=13:query:Name=ss10:param:ID=k"},
		{gate.Join(gate.Join(byName), byID), "join=21:join=13:query:Name=ss10:param:ID=k"},
		{gate.Tag("User", gate.Join(byName, byID)), "key:User=join=13:query:Name=ss10:param:ID=k"},
		// A value that a client chose may look like a Join, and is none.
		{gate.Tag("User", fixed("join=3:\u1e9e!")), "key:User=join=3:ss!"},
		{gate.Tag("User", fixed("join=03:\u1e9e")), "key:User=join=03:ss"},
		{gate.Tag("User", fixed("join=-1:\u1e9e")), "key:User=join=-1:ss"},
		{gate.Tag("User", fixed("join=")), "key:User=join="},
	} {
		if got := folded(t, c.key, r); got != c.want {
			t.Errorf("got %+q, want %+q", got, c.want)
		}
	}
	if got := folded(t, gate.ByHeader("X-User"), with("X-User", "join=3:\u1e9e")); got != "header:x-user=join=3:ss" {
		t.Errorf("a header that looks like a Join: got %+q, want \"header:x-user=join=3:ss\"", got)
	}
}

func TestFoldFails(t *testing.T) {
	t.Parallel()
	if got := ask(t, gate.Fold(gate.ByHeader("X-User")), &request{}); got != absent {
		t.Errorf("without the field: got %q, want %q", got, absent)
	}
	if got := ask(t, gate.Fold(fixed("")), &request{}); got != faulty {
		t.Errorf("an empty key: got %q, want %q", got, faulty)
	}
	if got := ask(t, gate.Fold(gate.ByHeader("X-User")), with("X-User", strings.Repeat("\u00c9", 600))); got != refused {
		t.Errorf("more than 1 KiB: got %.40q, want %q", got, refused)
	}
}

// TestFoldEveryCharacter folds each letter that has a case or is composed. A second Fold
// changes nothing, and letters that differ only in case give the same.
func TestFoldEveryCharacter(t *testing.T) {
	t.Parallel()
	of := func(r rune) string { return folded(t, gate.Tag("rune", fixed(string(r))), nil) }
	for r := range rune(unicode.MaxRune) {
		next := unicode.SimpleFold(r)
		if next == r && (norm.NFKD.IsNormalString(string(r)) || unicode.Is(unicode.Hangul, r) || unicode.Is(unicode.Han, r)) {
			continue
		}
		once := of(r)
		if twice := folded(t, fixed(once), nil); twice != once {
			t.Errorf("%U: folded once %+q, twice %+q, want the same", r, once, twice)
		}
		if of(next) != once {
			t.Errorf("%U is folded to %+q, and %U to %+q, want the same", r, once, next, of(next))
		}
	}
}

func FuzzFold(f *testing.F) {
	f.Add("Bob@example.com", "\u1e9e")
	f.Add("\u212a\xff", "E\u0301\u0327")
	f.Add("join=1:A", "\u13a0\uab70")
	f.Add("\u03b1\u0345\u0301", strings.Repeat("\u0301\u0345", 20))
	f.Fuzz(func(t *testing.T, a, b string) {
		if a == "" || b == "" || len(a)+len(b) > 200 {
			t.Skip()
		}
		first, second := gate.Tag("A", fixed(a)), gate.Tag("B", fixed(b))
		whole := folded(t, gate.Join(first, second), nil)
		if twice := folded(t, fixed(whole), nil); twice != whole {
			t.Errorf("%+q, %+q: folded once %+q, twice %+q, want the same", a, b, whole, twice)
		}
		parts, err := gate.Join(gate.Fold(first), gate.Fold(second))(nil)
		if err != nil || parts != whole {
			t.Errorf("%+q, %+q: the parts make %+q, %v, want what the whole makes, %+q", a, b, parts, err, whole)
		}
		for _, form := range []norm.Form{norm.NFC, norm.NFD} {
			if got := folded(t, gate.Join(gate.Tag("A", fixed(form.String(a))), second), nil); got != whole {
				t.Errorf("%+q: another form of it is folded to %+q, want %+q as itself", a, got, whole)
			}
		}
	})
}

// TestFoldOnServer: guesses at one account are counted together, however the requests
// spell its address.
func TestFoldOnServer(t *testing.T) {
	t.Parallel()
	limiter := local(t, limit.FixedWindow{Limit: 5, Window: time.Hour})
	login := gate.RateLimit(limiter, gate.Join(gate.Fold(gate.ByForm("email", nil)), gate.ByIP(nil)),
		&gate.RateLimitOptions{Count: gate.OnlyFailures})
	srv := httptest.NewServer(nethttp.Middleware(login)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	})))
	defer srv.Close()
	guess := func(email string) int {
		resp, err := srv.Client().PostForm(srv.URL+"/login", url.Values{"email": {email}, "password": {"guess"}})
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	spellings := []string{"Bob@example.com", "bob@example.com", "BOB@EXAMPLE.COM", "bob@example.Com", "bOB@example.com"}
	for i, email := range spellings {
		if got := guess(email); got != 401 {
			t.Errorf("guess %d, at %s: got %d, want 401", i, email, got)
		}
	}
	for _, email := range spellings {
		if got := guess(email); got != 429 {
			t.Errorf("after five guesses, at %s: got %d, want 429", email, got)
		}
	}
	if got := guess("eve@example.com"); got != 401 {
		t.Errorf("at another account: got %d, want 401", got)
	}
}
