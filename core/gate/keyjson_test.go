package gate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/gate"
)

func jsonBody(body string) *request {
	r := with("Content-Type", "application/json")
	r.body = body
	return r
}

func TestByJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pointer, body string
		want          outcome
	}{
		{"/user", `{"a":[{"user":"eve"}],"user":"bob"}`, "json:/user=bob"},
		{"/user", ` {"user" : "b\u006fb" } `, "json:/user=bob"},
		{"/user", `{"user":"bob","z":"eve"}`, "json:/user=bob"},
		{"/payer/id", `{"id":"eve","payer":{"id":"bob"}}`, "json:/payer/id=bob"},
		{"/items/1/sku", `{"items":[{"sku":"a"},{"sku":"b"}]}`, "json:/items/1/sku=b"},
		{"/0", `["bob"]`, "json:/0=bob"},
		{"/a~1b/c~0d", `{"a/b":{"c~d":"bob"}}`, "json:/a~1b/c~0d=bob"},
		{"/a~01", `{"a~1":"bob"}`, "json:/a~01=bob"},
		{"/a.b", `{"a":{"b":"eve"},"a.b":"bob"}`, "json:/a.b=bob"},
		{"/", `{"":"bob"}`, "json:/=bob"},
		{"/a=b", `{"a=b":"c"}`, "json:/a%3Db=c"},
		{"/n", `{"n":12345678901234567890123}`, "json:/n=12345678901234567890123"},
		{"/n", `{"n":9007199254740993}`, "json:/n=9007199254740993"},
		{"/n", `{"n":-1}`, "json:/n=-1"},
		{"/n", `{"n":"1"}`, "json:/n=1"},
		{"/n", `{"n":1}`, "json:/n=1"},
		{"/n", `{"n":0}`, "json:/n=0"},
		{"/n", `{"n":true}`, "json:/n=true"},
		{"/n", `{"n":false}`, "json:/n=false"},

		{"/n", ``, absent},
		{"/n", `{}`, absent},
		{"/n", `{"n":null}`, absent},
		{"/n", `{"n":""}`, absent},
		{"/n", `[1]`, absent},
		{"/n", `"n"`, absent},
		{"/n/m", `{"n":1}`, absent},
		{"/n/m", `{"n":null}`, absent},
		{"/2", `[1,2]`, absent},
		{"/01", `[1,2]`, absent},
		{"/-1", `[1,2]`, absent},
		{"/-", `[1,2]`, absent},

		{"/n", `{"n":{}}`, refused},
		{"/n", `{"n":[1]}`, refused},
		{"/n", `{"n":1.0}`, refused},
		{"/n", `{"n":1e3}`, refused},
		{"/n", `{"n":1E3}`, refused},
		{"/n", `{"n":-0}`, refused},
		{"/n", `{"n":1,"n":2}`, refused},
		{"/n", `{"n":1,"\u006e":2}`, refused},
		{"/n", `{"n":1,"N":2}`, refused},
		{"/n", `{"N":2}`, refused},
		{"/user", `{"user":1,"u\u017fer":2}`, refused},
		{"/a/n", `{"a":{"n":1},"a":{"n":2}}`, refused},
		{"/a/n", `{"a":{"n":1},"A":{"n":2}}`, refused},
		{"/n", `{"n":1}{"n":2}`, refused},
		{"/n", `{"n":1} x`, refused},
		{"/n", `{"n":1`, refused},
		{"/n", `{"n":01}`, refused},
		{"/n", `{'n':1}`, refused},
		{"/n", "\xef\xbb\xbf{\"n\":1}", refused},
		{"/n", "{\"n\":\"\xff\"}", refused},
		{"/n", ` `, refused},
		{"/n", `{"x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `,"n":1}`, refused},
	} {
		body := c.body
		if len(body) > 60 {
			body = body[:60]
		}
		if got := ask(t, gate.ByJSON(c.pointer, nil), jsonBody(c.body)); got != c.want {
			t.Errorf("%s of %s: got %q, want %q", c.pointer, body, got, c.want)
		}
	}
}

func TestByJSONContentType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lines []string
		want  outcome
	}{
		{[]string{"application/json"}, "json:/n=1"},
		{[]string{"Application/JSON; charset=utf-8"}, "json:/n=1"},
		{[]string{"application/vnd.api+json"}, "json:/n=1"},
		{nil, refused},
		{[]string{""}, refused},
		{[]string{"text/plain"}, refused},
		{[]string{"application/x-www-form-urlencoded"}, refused},
		{[]string{"application/", "json"}, refused},
	} {
		r := with("Content-Type", c.lines...)
		r.body = `{"n":1}`
		if got := ask(t, gate.ByJSON("/n", nil), r); got != c.want {
			t.Errorf("%q: got %q, want %q", c.lines, got, c.want)
		}
	}
}

// If a handler with encoding/json reads a value as the member, the gate has counted that
// value or refused the request.
func FuzzByJSONAgreesWithHandler(f *testing.F) {
	for _, s := range []string{
		`{"user":"bob"}`, `{"user":"a","user":"b"}`, `{"user":"a","USER":"b"}`, `{"USER":"b"}`,
		`{"user":"a","u\u017fer":"b"}`, `{"user":null}`, `{"user":"\ud800"}`, `{"user":1}`, `{"user":"a"}{"user":"b"}`, `null`, `[]`,
	} {
		f.Add(s)
	}
	key := gate.ByJSON("/user", nil)
	f.Fuzz(func(t *testing.T, body string) {
		got, err := key(jsonBody(body))
		var handler struct{ User string }
		if json.Unmarshal([]byte(body), &handler) != nil || handler.User == "" {
			return
		}
		if err == nil && got != "json:/user="+handler.User {
			t.Errorf("counted as %q, handled as %q, want the same", got, handler.User)
		}
		if ask(t, key, jsonBody(body)) == absent {
			t.Errorf("got a missing member, but a handler reads %q, want it counted or refused", handler.User)
		}
	})
}
