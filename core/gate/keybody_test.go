package gate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/gate"
)

func form(body string) *request {
	r := with("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	r.body = body
	return r
}

func multi(lines ...string) *request {
	r := with("Content-Type", `multipart/form-data; boundary="b"`)
	r.body = strings.Join(lines, "\r\n")
	return r
}

func part(name, value string) string {
	return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value
}

// odd is a request whose form the framework may read in another way.
type odd struct{ request }

func (*odd) OddForm() bool { return true }

func TestByForm(t *testing.T) {
	t.Parallel()
	inQuery := form("user=bob")
	inQuery.query = "user=eve"
	onlyInQuery := form("a=1")
	onlyInQuery.query = "user=eve"
	bracketsInQuery := form("user=bob")
	bracketsInQuery.query = "user[]=eve"
	caseInQuery := form("user=bob")
	caseInQuery.query = "User=eve"
	otherQuery := form("user=bob")
	otherQuery.query = "a=b"
	brokenQuery := form("user=bob")
	brokenQuery.query = "a=b;user=eve"
	untyped := &request{body: "user=bob"}
	json := with("Content-Type", "application/json")
	json.body = `{"a":"&user=bob&"}`
	doubled := with("Content-Type", "application/x-www-form-urlencoded", "application/json")
	doubled.body = "user=bob"
	unbound := with("Content-Type", "multipart/form-data")
	unbound.body = part("user", "bob")
	for _, c := range []struct {
		name string
		r    gate.Request
		want outcome
	}{
		{"urlencoded", form("a=1&user=b%6Fb"), "form:user=bob"},
		{"another query", otherQuery, "form:user=bob"},
		{"multipart", multi(part("a", "1"), part("user", "bob"), "--b--"), "form:user=bob"},
		{"multipart beside a file", multi(part(`user"; filename="f`, "eve"), part("user", "bob"), "--b--"), "form:user=bob"},
		{"no body", &request{}, absent},
		{"not there", form("a=1"), absent},
		{"empty", form("user="), absent},
		{"a file is no value", multi(part(`user"; filename="f`, "eve"), "--b--"), absent},
		{"doubled", form("user=bob&user=eve"), refused},
		{"in another case too", form("user=bob&User=eve"), refused},
		{"with brackets too", form("user=bob&user[]=eve"), refused},
		{"with brackets before", form("user=bob&[]user=eve"), refused},
		{"with brackets within", form("user=bob&u[]ser=eve"), refused},
		{"in another case only", form("User=eve"), refused},
		{"with brackets only", form("user[]=eve"), refused},
		{"with brackets only in multipart", multi(part("user[]", "eve"), "--b--"), refused},
		{"with brackets too in multipart", multi(part("user", "bob"), part("user[0]", "eve"), "--b--"), refused},
		{"another that begins alike", form("user=bob&username=eve&us=a"), "form:user=bob"},
		{"a form that the framework reads otherwise", &odd{*form("user=bob")}, refused},
		{"doubled in multipart", multi(part("user", "bob"), part("user", "eve"), "--b--"), refused},
		{"in the query too", inQuery, refused},
		{"in the query only", onlyInQuery, refused},
		{"in the query with brackets", bracketsInQuery, refused},
		{"in the query in another case", caseInQuery, refused},
		{"a broken query", brokenQuery, refused},
		{"broken", form("user=%zz"), refused},
		{"cut short", multi(part("user", "bob"), "--b"), refused},
		{"cut short after a part", multi(part("user", "bob"), part("a", "1")), refused},
		{"no boundary", unbound, refused},
		{"no type", untyped, refused},
		{"another type", json, refused},
		{"two types", doubled, refused},
	} {
		if got := ask(t, gate.ByForm("user", nil), c.r); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A client cannot get the limit of another key by spelling the first key's name in another
// way, which the handler's parser may undo.
func TestFirstOfDoesNotSkipAnotherSpelling(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"user[]=eve", "User=eve", "u[]ser=eve"} {
		inQuery := &request{query: body}
		for name, got := range map[string]outcome{
			"form":  ask(t, gate.FirstOf(gate.ByForm("user", nil), gate.Everyone), form(body)),
			"query": ask(t, gate.FirstOf(gate.ByQuery("user"), gate.Everyone), inQuery),
		} {
			if got != refused {
				t.Errorf("%s of %s: got %q, want %q", name, body, got, refused)
			}
		}
	}
}

func TestBodyErrors(t *testing.T) {
	t.Parallel()
	for name, wire := range map[string]func(*gate.BodyOptions) gate.Key{
		"form": func(o *gate.BodyOptions) gate.Key { return gate.ByForm("user", o) },
		"json": func(o *gate.BodyOptions) gate.Key { return gate.ByJSON("/user", o) },
	} {
		for _, err := range []error{gate.ErrBodyTooLarge, gate.ErrBodyBroken} {
			if got := ask(t, wire(nil), &request{bodyErr: err}); got != refused {
				t.Errorf("%s: %v: got %q, want %q", name, err, got, refused)
			}
		}
		for _, want := range []error{gate.ErrBodyConsumed, errors.New("boom")} {
			if _, err := wire(nil)(&request{bodyErr: want}); !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v for the hook", name, err, want)
			}
		}
		r := &request{body: "123456"}
		if ask(t, wire(nil), r); r.bodyMax != 1<<20 {
			t.Errorf("%s: read up to %d bytes, want %d", name, r.bodyMax, 1<<20)
		}
		if got := ask(t, wire(&gate.BodyOptions{MaxBody: 5}), r); got != refused || r.bodyMax != 5 {
			t.Errorf("%s: got %q, having read up to %d bytes, want %q and 5", name, got, r.bodyMax, refused)
		}
	}
}
