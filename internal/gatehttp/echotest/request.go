package echotest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatefake"
)

func request(e http.Handler, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
	return w
}

// told is an endpoint that answers with what report returns for the request.
func (d Driver[C]) told(report func(gate.Request) string) Handler[C] {
	return d.Handler(gatefake.Endpoint(func(q gate.Request) gate.Reply {
		return gate.Reply{Status: 200, Body: []byte(report(q))}
	}))
}

func (d Driver[C]) patterns(t *testing.T) {
	for _, c := range []struct{ path, target, param, want string }{
		{"/", "/", "id", "/ "},
		{"", "/", "id", "/ "},
		{"/users/:id", "/users/7", "id", "/users/{id} 7"},
		{"/user_:id/posts/:post", "/user_7/posts/8", "post", "/user_{id}/posts/{post} 8"},
		{`/jobs/:id/x\:cancel`, "/jobs/7/x:cancel", "id", "/jobs/{id}/x:cancel 7"},
		{"/files/*", "/files/a/b", "...", "/files/{...} a/b"},
		{"/files*", "/files/a", "...", "/files{...} /a"},
		{"/*", "/", "...", "/{...} "},
		{"/users/:id", "/users/7", "...", "/users/{id} "},
	} {
		e := d.New()
		e.Add("GET", c.path, d.told(func(q gate.Request) string { return q.Route() + " " + q.Param(c.param) }))
		if got := request(e, c.target).Body.String(); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.path, c.target, got, c.want)
		}
	}
}

func (d Driver[C]) whereTheRouteIsKnown(t *testing.T) {
	var got string
	noting := d.Middleware(gatefake.Func(func(q gate.Request) gate.Pass {
		got = fmt.Sprintf("%q %q", q.Route(), q.Param("id"))
		return gate.Pass{}
	}))
	ok := func(c C) error { return c.String(200, "ok") }
	const known, unknown = `"/users/{id}" "7"`, `"" ""`
	for name, c := range map[string]struct {
		mount func(App[C])
		want  string
	}{
		"Pre":   {func(e App[C]) { e.Pre(noting); e.Add("GET", "/users/:id", ok) }, unknown},
		"Use":   {func(e App[C]) { e.Use(noting); e.Add("GET", "/users/:id", ok) }, known},
		"Group": {func(e App[C]) { e.AddToGroup("/users", noting, "GET", "/:id", ok) }, known},
		"Route": {func(e App[C]) { e.Add("GET", "/users/:id", ok, noting) }, known},
		"404":   {func(e App[C]) { e.Use(noting); e.Add("GET", "/other", ok) }, unknown},
		"405":   {func(e App[C]) { e.Use(noting); e.Add("POST", "/users/:id", ok) }, unknown},
	} {
		got = "nothing"
		e := d.New()
		c.mount(e)
		request(e, "/users/7")
		if got != c.want {
			t.Errorf("%s: the gate was told %s, want %s", name, got, c.want)
		}
	}
}

type contextKey struct{}

func (d Driver[C]) valueOfTheContextToo(t *testing.T) {
	e := d.New()
	e.Use(func(next Handler[C]) Handler[C] {
		return func(c C) error {
			c.Set("name", "stored")
			c.SetRequest(c.Request().WithContext(context.WithValue(c.Request().Context(), contextKey{}, "kept")))
			return next(c)
		}
	})
	e.Add("GET", "/", d.told(func(q gate.Request) string {
		return fmt.Sprint(q.Value("name"), " ", q.Value(contextKey{}), " ", q.Value(7))
	}))
	if got := request(e, "/").Body.String(); got != "stored kept <nil>" {
		t.Errorf("got %q, want \"stored kept <nil>\"", got)
	}
}

// The server removes the files of the request that it made, and not those of a copy.
func (d Driver[C]) multipartFormReachesServer(t *testing.T) {
	e := d.New()
	e.Add("POST", "/", func(c C) error {
		_, err := c.MultipartForm()
		return err
	}, d.Middleware(gatefake.Func(func(q gate.Request) gate.Pass {
		return gate.Pass{Context: context.WithValue(q.Context(), contextKey{}, 1)}
	})))
	r := httptest.NewRequest("POST", "/", strings.NewReader("--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--x--\r\n"))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	e.ServeHTTP(httptest.NewRecorder(), r)
	if r.MultipartForm == nil || r.MultipartForm.Value["a"] == nil {
		t.Errorf("the request has the form %v, want one with the field a", r.MultipartForm)
	}
}
