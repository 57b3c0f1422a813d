package echolimit_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/echolimit"
	"github.com/neap-go/neap/internal/gatefake"
)

// told is an endpoint that answers with what report returns for the request.
func told(report func(gate.Request) string) echo.HandlerFunc {
	return echolimit.Handler(gatefake.Endpoint(func(q gate.Request) gate.Reply {
		return gate.Reply{Status: 200, Body: []byte(report(q))}
	}))
}

func TestPatterns(t *testing.T) {
	t.Parallel()
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
		e := echo.New()
		e.GET(c.path, told(func(q gate.Request) string { return q.Route() + " " + q.Param(c.param) }))
		if got := request(e, c.target).Body.String(); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.path, c.target, got, c.want)
		}
	}
}

func TestWhereTheRouteIsKnown(t *testing.T) {
	t.Parallel()
	var got string
	noting := echolimit.Middleware(gatefake.Func(func(q gate.Request) gate.Pass {
		got = fmt.Sprintf("%q %q", q.Route(), q.Param("id"))
		return gate.Pass{}
	}))
	ok := func(c echo.Context) error { return c.String(200, "ok") }
	const known, unknown = `"/users/{id}" "7"`, `"" ""`
	for name, c := range map[string]struct {
		mount func(*echo.Echo)
		want  string
	}{
		"Pre":   {func(e *echo.Echo) { e.Pre(noting); e.GET("/users/:id", ok) }, unknown},
		"Use":   {func(e *echo.Echo) { e.Use(noting); e.GET("/users/:id", ok) }, known},
		"Group": {func(e *echo.Echo) { e.Group("/users", noting).GET("/:id", ok) }, known},
		"Route": {func(e *echo.Echo) { e.GET("/users/:id", ok, noting) }, known},
		"404":   {func(e *echo.Echo) { e.Use(noting); e.GET("/other", ok) }, unknown},
		"405":   {func(e *echo.Echo) { e.Use(noting); e.POST("/users/:id", ok) }, unknown},
	} {
		got = "nothing"
		e := echo.New()
		c.mount(e)
		request(e, "/users/7")
		if got != c.want {
			t.Errorf("%s: the gate was told %s, want %s", name, got, c.want)
		}
	}
}

type contextKey struct{}

func TestValueOfTheContextToo(t *testing.T) {
	t.Parallel()
	e := echo.New()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.Set("name", "stored")
			c.SetRequest(c.Request().WithContext(context.WithValue(c.Request().Context(), contextKey{}, "kept")))
			return next(c)
		}
	})
	e.GET("/", told(func(q gate.Request) string {
		return fmt.Sprint(q.Value("name"), " ", q.Value(contextKey{}), " ", q.Value(7))
	}))
	if got := request(e, "/").Body.String(); got != "stored kept <nil>" {
		t.Errorf("got %q, want \"stored kept <nil>\"", got)
	}
}
