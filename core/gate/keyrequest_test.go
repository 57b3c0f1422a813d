package gate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/gate"
)

// outcome is what a key may return: a subject, a refusal that FirstOf skips, a refusal
// that it does not skip, or an error of the wiring.
type outcome string

const (
	absent  outcome = "missing"
	refused outcome = "refused"
	faulty  outcome = "wiring"
)

func ask(t *testing.T, key gate.Key, r gate.Request) outcome {
	t.Helper()
	s, err := key(r)
	switch {
	case err == nil:
		return outcome(s)
	case s != "":
		t.Errorf("got the subject %q with the error %v, want no subject", s, err)
	case errors.Is(err, gate.ErrWiring):
		return faulty
	case errors.Is(err, gate.ErrMissing):
		return absent
	}
	return refused
}

func TestByHeader(t *testing.T) {
	t.Parallel()
	key := gate.ByHeader("x-API-key")
	for _, c := range []struct {
		name string
		r    *request
		want outcome
	}{
		{"one line", with("X-Api-Key", "abc"), "header:x-api-key=abc"},
		{"space around it", with("X-Api-Key", " \tabc "), "header:x-api-key=abc"},
		{"space and commas in it", with("X-Api-Key", "a b, c"), "header:x-api-key=a b, c"},
		{"any bytes", with("X-Api-Key", "\xff\x00}"), "header:x-api-key=\xff\x00}"},
		{"none", &request{}, absent},
		{"empty", with("X-Api-Key", ""), absent},
		{"blank", with("X-Api-Key", " \t"), absent},
		{"doubled", with("X-Api-Key", "abc", "def"), refused},
		{"doubled alike", with("X-Api-Key", "abc", "abc"), refused},
		{"doubled, one empty", with("X-Api-Key", "abc", ""), refused},
	} {
		if got := ask(t, key, c.r); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if got := ask(t, gate.ByHeader("Host"), &request{host: "a.example"}); got != "header:host=a.example" {
		t.Errorf("Host: got %q, want \"header:host=a.example\"", got)
	}
}

func TestByRouteAndParam(t *testing.T) {
	t.Parallel()
	users := &request{route: "/users/{id}", params: map[string]string{"id": "a b/c"}}
	files := &request{route: "/files/{...}", params: map[string]string{"...": "x/y", "path": "x/y"}}
	for _, c := range []struct {
		name string
		key  gate.Key
		r    *request
		want outcome
	}{
		{"route", gate.ByRoute(), users, "route=/users/{id}"},
		{"no route", gate.ByRoute(), &request{path: "/users/1"}, faulty},
		{"param", gate.ByParam("id"), users, "param:id=a b/c"},
		{"no such param", gate.ByParam("name"), users, faulty},
		{"part of a name", gate.ByParam("i"), users, faulty},
		{"param without a route", gate.ByParam("id"), &request{params: users.params}, faulty},
		{"empty param", gate.ByParam("id"), &request{route: "/users/{id}"}, absent},
		{"wildcard", gate.ByParam("..."), files, "param:...=x/y"},
		{"wildcard by the framework's own name", gate.ByParam("path"), files, faulty},
	} {
		if got := ask(t, c.key, c.r); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	_, err := gate.ByRoute()(&request{})
	if err == nil || !strings.Contains(err.Error(), "mount the gate on the route") {
		t.Errorf("got the error %v, want one that names the remedy", err)
	}
}

func TestByPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, want string }{
		{"/", "path=/"},
		{"", "path=/"},
		{"/a/b", "path=/a/b"},
		{"/%61/%62", "path=/a/b"},
		{"/a%2fb", "path=/a%2Fb"},
		{"/a%2Fb", "path=/a%2Fb"},
		{"/caf\xc3\xa9", "path=/caf%C3%A9"},
		{"/caf%c3%a9", "path=/caf%C3%A9"},
		{"/a%25b", "path=/a%25b"},
		{"/%2e%2E/", "path=/../"},
		{"/a+b", "path=/a+b"},
		{"/%zz", "refused"},
		{"/%", "refused"},
		{"/a%2", "refused"},
	} {
		if got := ask(t, gate.ByPath(), &request{path: c.path}); got != outcome(c.want) {
			t.Errorf("%s: got %q, want %q", c.path, got, c.want)
		}
	}
}

func TestByQuery(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		query string
		want  outcome
	}{
		{"user=bob", "query:user=bob"},
		{"a=1&user=b%20o+b&z", "query:user=b o b"},
		{"%75ser=bob", "query:user=bob"},
		{"", absent},
		{"user", absent},
		{"user=", absent},
		{"username=bob", absent},
		{"User=bob", refused},
		{"user[]=bob", refused},
		{"user=bob&USER=eve", refused},
		{"user=bob&user=eve", refused},
		{"user=bob&%75ser=", refused},
		{"user=%zz", refused},
		{"a=%&user=bob", refused},
		{"user=bob;a=b", refused},
	} {
		if got := ask(t, gate.ByQuery("user"), &request{query: c.query}); got != c.want {
			t.Errorf("%s: got %q, want %q", c.query, got, c.want)
		}
	}
}
