package gate

import (
	"errors"
	"math/rand/v2"
	"mime"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/neap-go/neap/internal/redistest"
)

// asked is what a fingerprint is made from.
type asked struct{ method, path, query, kind, body string }

func (a asked) request() *incoming {
	q := &incoming{snapshot: snapshot{method: a.method, path: a.path, query: a.query}, body: a.body}
	if a.kind != "" {
		q.header = map[string][]string{"Content-Type": {a.kind}}
	}
	return q
}

var fingerprintForm = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

func printOf(t testing.TB, q *incoming) string {
	t.Helper()
	got, err := fingerprint(q, 1<<20, AsSent)
	if err != nil || !fingerprintForm.MatchString(got) {
		t.Fatalf("%+v: got the fingerprint %q, %v, want 43 characters of base64url", q, got, err)
	}
	return got
}

// Records outlive the process that wrote them: a fingerprint is the same in
// every version.
func TestFingerprintsStay(t *testing.T) {
	t.Parallel()
	order := asked{"POST", "/orders", "a=b", "application/json", `{"order_id":7}`}.request()
	if got := printOf(t, order); got != "WIlXKRR_-ymzI0iLvAw_RS3FF7odWnX-uh-ko4zALuk" {
		t.Errorf("an order: got the fingerprint %s, want that of every version", got)
	}
	upload := asked{"POST", "/files", "", "multipart/form-data; boundary=b", body("b", part("a", "1"))}.request()
	if got := printOf(t, upload); got != "85MO_YYj9LGG_2p5MYx56sMZQKqrkiOUDz53A4n36_c" {
		t.Errorf("an upload: got the fingerprint %s, want that of every version", got)
	}
	got, err := fingerprintOf(order, []Key{ByJSON("/order_id", nil), ByQuery("c")})
	if got != "ntCJph0m3MzRyXcf30vJWm69mHUf-WHmvzOHg7ldgLY" || err != nil {
		t.Errorf("fields of an order: got the fingerprint %s, %v, want that of every version", got, err)
	}
}

// random makes texts from few letters, so that moving text from one part to the next
// often makes the text of another request.
func random(r *rand.Rand, letters string) string {
	b := make([]byte, r.IntN(5))
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}

func randomAsked(r *rand.Rand) asked {
	return asked{
		method: []string{"POST", "PUT", "PATCH", "POS", ""}[r.IntN(5)],
		path:   "/" + random(r, "ab/T"),
		query:  random(r, "ab=/"),
		kind:   []string{"", "text/plain", "text/html", "application/json", "multipart/form-data", "a b"}[r.IntN(6)],
		body:   random(r, "ab\x00\x04"),
	}
}

// TestFingerprintsDiffer compares pairs that differ in one thing, and every
// request with all others.
func TestFingerprintsDiffer(t *testing.T) {
	t.Parallel()
	r := redistest.Rand(t)
	byPrint, byRequest := map[string]asked{}, map[asked]string{}
	differ := map[string]int{}
	for pairs := redistest.Ops(100_000); pairs > 0; {
		one := randomAsked(r)
		other, mutant := one, randomAsked(r)
		what := []string{"method", "path", "query", "kind", "body"}[r.IntN(5)]
		switch what {
		case "method":
			other.method = mutant.method
		case "path":
			other.path = mutant.path
		case "query":
			other.query = mutant.query
		case "kind":
			other.kind = mutant.kind
		case "body":
			other.body = mutant.body
		}
		if one != other {
			differ[what]++
			pairs--
		}
		for _, a := range []asked{one, other} {
			got := printOf(t, a.request())
			if known, ok := byPrint[got]; ok && known != a {
				t.Fatalf("%+v and %+v have one fingerprint, want two", known, a)
			}
			if known, ok := byRequest[a]; ok && known != got {
				t.Fatalf("%+v has two fingerprints, want one", a)
			}
			byPrint[got], byRequest[a] = a, got
		}
	}
	if len(differ) != 5 {
		t.Errorf("pairs differed in %v, want pairs that differ in each of the five parts", differ)
	}
}

// What does not belong to a request's meaning may differ between attempts.
func TestFingerprintIgnoresOtherFields(t *testing.T) {
	t.Parallel()
	first := asked{"POST", "/orders", "a=b", "application/json", "{}"}
	want := printOf(t, first.request())
	for _, kind := range []string{"application/json; charset=utf-8", "Application/JSON", " application/json ;a=b", `application/json; a="`} {
		again := first
		again.kind = kind
		if got := printOf(t, again.request()); got != want {
			t.Errorf("%s: got another fingerprint than that of %s, want the same", kind, first.kind)
		}
	}
	again := first.request()
	again.host = "b.example"
	again.header["Date"] = []string{"today"}
	again.header["Idempotency-Key"] = []string{"abc"}
	if got := printOf(t, again); got != want {
		t.Errorf("with other header fields: got the fingerprint %s, want %s", got, want)
	}
	none, empty := first.request(), first.request()
	none.header, empty.header["Content-Type"] = nil, []string{" "}
	if printOf(t, none) != printOf(t, empty) {
		t.Error("an empty Content-Type: got another fingerprint than without one, want the same")
	}
}

// A Content-Type that cannot be parsed still tells requests apart.
func TestFingerprintOfStrangeTypes(t *testing.T) {
	t.Parallel()
	prints := map[string][]string{}
	for _, lines := range [][]string{
		nil, {"text/plain"}, {"text/plain", "text/plain"}, {"text/plain", "text/html"}, {"text/html", "text/plain"},
		{"text/plain, text/html"}, {"text/"}, {"/"}, {";"}, {"", ""}, {"text/plain", ""}, {"text/plaintext/html"},
		{"multipart/form-data; boundary=b", "text/plain"},
	} {
		q := &incoming{header: map[string][]string{"Content-Type": lines}, body: body("b", part("a", "1"))}
		got := printOf(t, q)
		if other, ok := prints[got]; ok {
			t.Errorf("%q and %q have one fingerprint, want two", lines, other)
		}
		prints[got] = lines
	}
}

func TestFingerprintBodyErrors(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for err, status := range map[error]int{ErrBodyTooLarge: 413, ErrBodyBroken: 400, ErrBodyConsumed: 0, boom: 0} {
		got, failed := fingerprint(&incoming{err: err}, 10, CanonicalJSON)
		r, refused := asRefusal(failed)
		if got != "" || refused != (status != 0) || refused && r.status != status || !refused && !errors.Is(failed, err) {
			t.Errorf("%v: got %q, %v, want no fingerprint and the refusal %d (0: the error itself)",
				err, got, failed, status)
		}
		got, failed = fingerprintOf(&incoming{err: err}, []Key{ByJSON("/a", nil)})
		if r, refused := asRefusal(failed); got != "" || refused != (status != 0) || refused && r.status != status {
			t.Errorf("%v of a field: got %q, %v, want no fingerprint and the refusal %d (0: none)",
				err, got, failed, status)
		}
	}
	q := &incoming{body: "12345"}
	if _, err := fingerprint(q, 5, AsSent); err != nil || q.max != 5 {
		t.Errorf("a body at the limit: got %v, read up to %d bytes, want no error and 5", err, q.max)
	}
	if got, err := fingerprint(q, 4, AsSent); err == nil || got != "" {
		t.Errorf("a body over the limit: got %q, %v, want no fingerprint and an error", got, err)
	}
}

// A body is hashed where it is in memory, however many parts it has. The canonical form of JSON is
// in memory twice, however deep it is nested.
func TestFingerprintAllocations(t *testing.T) {
	const size, depth = 1 << 20, 100
	for kind, c := range map[string]struct {
		body string
		how  Fingerprint
		most int64
	}{
		"text/plain":                      {strings.Repeat("x", size), AsSent, size / 8},
		"multipart/form-data; boundary=b": {strings.Repeat("--b\r\n\r\n", size/7) + "--b--", AsSent, size / 8},
		"application/json":                {strings.Repeat(`{"a":`, depth) + `"` + strings.Repeat("x", size) + `"` + strings.Repeat("}", depth), CanonicalJSON, 3*size + size/4}, // and the text of the string
	} {
		q := asked{"POST", "/", "", kind, c.body}.request()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := fingerprint(q, 2*size, c.how); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		beside := int64(after.TotalAlloc-before.TotalAlloc) - int64(len(c.body)) // incoming copies it
		if beside > c.most {
			t.Errorf("%s: got %d bytes allocated in addition to the body, want %d at most", kind, beside, c.most)
		}
	}
}

// With CanonicalJSON, bodies that say the same are the same, and no others.
func TestFingerprintOfCanonicalJSON(t *testing.T) {
	t.Parallel()
	canonical := func(kind, body string) (string, error) {
		return fingerprint(asked{"POST", "/orders", "", kind, body}.request(), 1<<20, CanonicalJSON)
	}
	const kind, order = "application/json", `{"sku":"café","amount":10.50,"to":{"city":"Bonn","zip":"53111"}}`
	want, err := canonical(kind, order)
	if err != nil || want != "JLfDo49iHqep32pxWGcc3nZC3mDet0C9x8Qd_CNdbjs" { // records outlive the process that wrote them
		t.Errorf("got the fingerprint %s, %v, want that of every version", want, err)
	}
	for body, same := range map[string]bool{
		`{"to":{"zip":"53111","city":"Bonn"},"amount":10.5,"sku":"café"}`:                                  true,
		"{\r\n\t\"to\" : {\"zip\":\"53111\",\"city\":\"Bonn\"},\"amount\":105e-1,\"sku\":\"caf\\u00e9\" }": true,
		`{"to":{"zip":53111,"city":"Bonn"},"amount":10.5,"sku":"café"}`:                                    false,
		`{"to":{"zip":"53111","city":"Bonn"},"amount":10.51,"sku":"café"}`:                                 false,
		`{"to":{"zip":"53111","city":"Bonn"},"Amount":10.5,"sku":"café"}`:                                  false,
		`{"to":{"zip":"53111","city":"Bonn"},"amount":10.5,"sku":"café","x":null}`:                         false,
		`{"city":"Bonn","to":{"zip":"53111"},"amount":10.5,"sku":"café"}`:                                  false,
		`[{"to":{"zip":"53111","city":"Bonn"},"amount":10.5,"sku":"café"}]`:                                false,
	} {
		if got, err := canonical(kind, body); err != nil || (got == want) != same {
			t.Errorf("%s: got %s, %v, beside %s of the order, want the same: %t", body, got, err, want, same)
		}
	}
	for _, kind := range []string{"application/json; charset=utf-8", "Application/JSON"} {
		if got, err := canonical(kind, order); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s as of application/json", kind, got, err, want)
		}
	}
	patch, err := canonical("application/merge-patch+json", `{"b":1,"a":2}`)
	if other, err2 := canonical("application/merge-patch+json", `{"a":2,"b":1}`); err != nil || err2 != nil || patch != other {
		t.Errorf("another type of JSON: got %s, %v, and %s, %v, want the same", patch, err, other, err2)
	}
	for body, title := range map[string]string{
		`{"a":1,"a":1}`:            "a member twice",
		`{"a":1,"\u0061":2}`:       "a member twice",
		`{"a":9007199254740993}`:   "send it as a string",
		`{"a":1e400}`:              "send it as a string",
		`{"a":"\ud800"}`:           "not valid JSON",
		"{\"a\":\"\xff\"}":         "not valid JSON",
		"\ufeff{}":                 "not valid JSON",
		`{"a":1}{"a":1}`:           "not valid JSON",
		`a=1`:                      "not valid JSON",
		" ":                        "not valid JSON",
		strings.Repeat("[", 1<<19): "not valid JSON",
		strings.Repeat("[", 129) + strings.Repeat("]", 129): "nested too deeply",
	} {
		got, err := canonical(kind, body)
		if r, ok := asRefusal(err); got != "" || !ok || r.status != 400 || !strings.Contains(r.title, title) {
			t.Errorf("%.40q: got %q, %v, want the refusal 400 that says %q", body, got, err, title)
		}
	}
}

// With CanonicalJSON, what is not JSON by its type has the fingerprint that it has without.
func TestFingerprintOfWhatIsNotJSON(t *testing.T) {
	t.Parallel()
	for _, q := range []*incoming{
		asked{"POST", "/", "", "text/plain", `{"a":1,"b":2}`}.request(),
		asked{"POST", "/", "", "", `{"a":1,"b":2}`}.request(),
		asked{"POST", "/", "", "application/x-www-form-urlencoded", "a=1&b=2"}.request(),
		asked{"POST", "/", "", "multipart/form-data; boundary=b", body("b", part("a", "1"))}.request(),
		asked{"POST", "/", "", "application/json-seq", `{"a":1,"b":2}`}.request(),
		asked{"POST", "/", "", "application/json", ""}.request(),
		{header: map[string][]string{"Content-Type": {"application/json", "application/json"}}, body: `{"a":1,"a":2}`},
	} {
		if got, err := fingerprint(q, 1<<20, CanonicalJSON); err != nil || got != printOf(t, q) {
			t.Errorf("%q: got %s, %v, want %s as without CanonicalJSON", q.header, got, err, printOf(t, q))
		}
	}
	if got, err := fingerprint(asked{kind: "application/json", body: "{}"}.request(), 9, CanonicalJSON); err != nil || got == printOf(t, asked{kind: "application/json", body: "{}"}.request()) {
		t.Errorf("an object in its canonical form: got %s, %v, want another fingerprint than as sent", got, err)
	}
}

func TestFingerprintOfFields(t *testing.T) {
	t.Parallel()
	fields := []Key{ByJSON("/order_id", nil), ByJSON("/payer", nil)}
	order := asked{"POST", "/orders", "a=b", "application/json", `{"order_id":7,"at":1}`}
	want, err := fingerprintOf(order.request(), fields)
	if err != nil || !fingerprintForm.MatchString(want) {
		t.Fatalf("got the fingerprint %q, %v, want 43 characters of base64url", want, err)
	}
	for name, c := range map[string]struct {
		change func(*asked)
		same   bool
	}{
		"the same":          {func(*asked) {}, true},
		"another query":     {func(a *asked) { a.query = "" }, true},
		"other members":     {func(a *asked) { a.body = `{"at":2,"order_id":7}` }, true},
		"another type":      {func(a *asked) { a.kind = "application/vnd.shop+json" }, true},
		"another method":    {func(a *asked) { a.method = "PUT" }, false},
		"another path":      {func(a *asked) { a.path = "/order" }, false},
		"another value":     {func(a *asked) { a.body = `{"order_id":8}` }, false},
		"missing":           {func(a *asked) { a.body = `{}` }, false},
		"in another member": {func(a *asked) { a.body = `{"payer":7}` }, false},
		"in both members":   {func(a *asked) { a.body = `{"order_id":7,"payer":7}` }, false},
	} {
		a := order
		c.change(&a)
		got, err := fingerprintOf(a.request(), fields)
		if err != nil || (got == want) != c.same {
			t.Errorf("%s: got %q, %v, beside %q of the order, want the same: %t", name, got, err, want, c.same)
		}
	}
	only := []Key{ByJSON("/order_id", nil)}
	if got, err := fingerprintOf(order.request(), only); err != nil || got == want {
		t.Errorf("another list of fields: got %q, %v, want another fingerprint than %q", got, err, want)
	}
}

// A field that the request has, but in a wrong form, does not count as absent.
func TestFingerprintOfBrokenFields(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		field Key
		body  string
		want  func(error) bool
	}{
		"doubled":       {ByJSON("/a", nil), `{"a":1,"a":2}`, isRefusal},
		"not JSON":      {ByJSON("/a", nil), `a`, isRefusal},
		"an own error":  {func(Request) (string, error) { return "", boom }, "", func(err error) bool { return errors.Is(err, boom) }},
		"empty, unsaid": {func(Request) (string, error) { return "", nil }, "", func(err error) bool { return errors.Is(err, ErrWiring) }},
	} {
		a := asked{kind: "application/json", body: c.body}
		if got, err := fingerprintOf(a.request(), []Key{ByPath(), c.field}); got != "" || !c.want(err) {
			t.Errorf("%s: got %q, %v, want no fingerprint and an error of its kind", name, got, err)
		}
	}
	absent := func(err error) Key { return func(Request) (string, error) { return "", err } }
	for _, err := range []error{ErrMissing, errors.Join(ErrMissing, Refuse(401, "Sign in first"))} {
		if _, err := fingerprintOf(&incoming{}, []Key{absent(err)}); err != nil {
			t.Errorf("a missing field: got %v, want no error", err)
		}
	}
}

func isRefusal(err error) bool {
	_, ok := asRefusal(err)
	return ok
}

// Requests have the same fingerprint if, and only if, they are the same or differ only in
// the boundary.
func FuzzFingerprint(f *testing.F) {
	form := func(boundary string) string { return "multipart/form-data; boundary=" + boundary }
	two := body("b", part("a", "1"), part("b", "2"))
	f.Add("/a", "b", "text/plain", "c", "/ab", "", "text/plain", "c")
	f.Add("/", "", form("b"), two, "/", "", form("c"), strings.ReplaceAll(two, "--b", "--c"))
	f.Add("/", "", form("b"), two, "/", "", form("b"), body("b", part("b", "2"), part("a", "1")))
	f.Add("/", "", form("b"), body("b", part("a", "\r\n--c\r\n")), "/", "", form("c"), body("c", part("a", "\r\n--b\r\n")))
	f.Add("/", "", form("b"), two+"x", "/", "", form("c"), "x"+two)
	f.Add("/", "", form("b"), "--b--", "/", "", form("c"), "--c--")
	f.Add("/", "", form("-"), "-----", "/", "", form("--"), "------")
	f.Add("/", "", form("b"), "", "/", "", "multipart/form-data", "")
	f.Fuzz(func(t *testing.T, path, query, kind, text, path2, query2, kind2, text2 string) {
		one := asked{"POST", path, query, kind, text}
		two := asked{"POST", path2, query2, kind2, text2}
		same := printOf(t, one.request()) == printOf(t, two.request())
		if meaning(one) != meaning(two) && same {
			t.Fatalf("%+v and %+v have one fingerprint, want two", one, two)
		}
		if one == two && !same {
			t.Fatalf("%+v has two fingerprints, want one", one)
		}
		media, params, _ := mime.ParseMediaType(kind)
		if media != "multipart/form-data" || !delimits([]byte(text), []byte("--"+params["boundary"])) || params["boundary"] == "" {
			return
		}
		other := "x"
		for strings.Contains(text, other) {
			other += "x"
		}
		one.kind, one.body = form(other), strings.ReplaceAll(text, "--"+params["boundary"], "--"+other)
		if got := printOf(t, one.request()); got != printOf(t, asked{"POST", path, query, kind, text}.request()) {
			t.Fatalf("%q: got another fingerprint with another boundary, want the same", text)
		}
	})
}
