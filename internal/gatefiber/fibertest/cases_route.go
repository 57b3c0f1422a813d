package fibertest

import (
	"strings"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatetest"
)

// patterns: Route has every parameter that Fiber knows, under its name. A gate refuses to
// key by one that Route lacks.
func patterns(t *testing.T, d Driver) {
	for _, c := range []struct{ path, target, want string }{
		{"/", "/", "/"},
		{"/users/:id", "/users/a%2Fb%20c", "/users/{id} id=a%2Fb%20c"},
		{"/users/:id?", "/users/", "/users/{id} id="},
		{"/flights/:from-:to", "/flights/LAX-SFO", "/flights/{from}-{to} from=LAX to=SFO"},
		{"/file/:name.:ext", "/file/a.txt", "/file/{name}.{ext} name=a ext=txt"},
		{"/v1/:resource\\:cancel", "/v1/job:cancel", "/v1/{resource}:cancel resource=job"},
		{"/shop/product/color::color/size::size", "/shop/product/color:red/size:xl",
			"/shop/product/color:{color}/size:{size} color=red size=xl"},
		{"/users/:id<int>", "/users/7", "/users/{id} id=7"},
		{"/users/:id<int;min(5)>/posts/:post<alpha>?", "/users/7/posts/x", "/users/{id}/posts/{post} id=7 post=x"},
		{`/on/:date<regex(\d{4}-\d{2}-\d{2})>`, "/on/2024-01-02", "/on/{date} date=2024-01-02"},
		{`/on/:date<regex(\d{4}.?\d{2})>/rest`, "/on/2024x01/rest", "/on/{date}/rest date=2024x01"},
		{"/files/*", "/files/a/b%20c", "/files/{...} ...=a/b%20c"},
		{"/files/*", "/files/", "/files/{...} ...="},
		{"/files/+", "/files/a/b", "/files/{...} ...=a/b"},
		{"/*", "/a/b", "/{...} ...=a/b"},
		{"*", "/a", "/{...} ...=a"},
	} {
		t.Run(c.path+" "+c.target, func(t *testing.T) {
			t.Parallel()
			var params []string
			address := d.Serve(t, Config{}, answering(c.path, func(q gate.Request) string {
				values := []string{q.Route()}
				for _, name := range params {
					if name[0] == '*' || name[0] == '+' {
						name = "..."
					}
					if !strings.Contains(q.Route(), "{"+name+"}") {
						t.Errorf("%s: the route %s lacks {%s}, want it there", c.path, q.Route(), name)
					}
					values = append(values, name+"="+q.Param(name))
				}
				return strings.Join(values, " ")
			}, func(x gatetest.Exchange, next func() error) error {
				params = d.Params(x)
				return next()
			}))
			if got := get(t, address, c.target); got != "200 "+c.want {
				t.Errorf("got %q, want %q", got, "200 "+c.want)
			}
		})
	}
}

// unescapedParams: under UnescapePath Fiber turns a plus sign into a space, for a gate as
// for the handler.
func unescapedParams(t *testing.T, d Driver) {
	var id string
	address := d.Serve(t, Config{UnescapePath: true}, answering("/users/{id}", func(q gate.Request) string {
		key, _ := gate.ByParam("id")(q)
		return id + " " + q.Param("id") + " " + key
	}, func(x gatetest.Exchange, next func() error) error {
		id = x.Param("id")
		return next()
	}))
	for target, want := range map[string]string{
		"/users/a+b":       "a b a b param:id=a b",
		"/users/a%20b":     "a b a b param:id=a b",
		"/users/100%2525":  "100%25 100%25 param:id=100%",
		"/users/%25252541": "%252541 %252541 param:id=A",
	} {
		if got := get(t, address, target); got != "200 "+want {
			t.Errorf("%s: got %q, want %q", target, got, "200 "+want)
		}
	}
}
