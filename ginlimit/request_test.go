package ginlimit_test

import (
	"fmt"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/ginlimit"
	"github.com/neap-go/neap/internal/gatefake"
)

// told is an endpoint that answers with what report returns for the request.
func told(report func(gate.Request) string) gin.HandlerFunc {
	return ginlimit.Handler(gatefake.Endpoint(func(q gate.Request) gate.Reply {
		return gate.Reply{Status: 200, Body: []byte(report(q))}
	}))
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, target, param, want string }{
		{"/", "/", "id", "/ "},
		{"/users/:id", "/users/7", "id", "/users/{id} 7"},
		{"/users/:id/", "/users/7/", "id", "/users/{id}/ 7"},
		{"/user_:id/posts/:post", "/user_7/posts/8", "post", "/user_{id}/posts/{post} 8"},
		{"/files/*path", "/files/a/b", "...", "/files/{...} a/b"},
		{"/files/*path", "/files/", "...", "/files/{...} "},
		{"/files/*path", "/files/a", "path", "/files/{...} /a"},
		{"/*all", "/a/b", "...", "/{...} a/b"},
		{`/v1/orders\:batch`, "/v1/orders:batch", "batch", "/v1/orders:batch "},
		{`/v1/a\:b_:id/c\:d`, "/v1/a:b_7/c:d", "id", "/v1/a:b_{id}/c:d 7"},
		{"/users/:id", "/users/7", "...", "/users/{id} "},
	} {
		engine := gin.New()
		engine.GET(c.path, told(func(q gate.Request) string { return q.Route() + " " + q.Param(c.param) }))
		if got := request(engine, c.target).Body.String(); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.path, c.target, got, c.want)
		}
	}
}

// If Gin routes by the decoded path, it takes %2F for a slash, and so does the gate.
func TestParametersAreThoseOfTheHandler(t *testing.T) {
	t.Parallel()
	engine := gin.New()
	engine.GET("/users/:id/*rest", told(func(q gate.Request) string {
		c, _ := ginlimit.Context(q)
		return fmt.Sprintf("%q %q %q %q", q.Param("id"), c.Param("id"), q.Param("..."), c.Param("rest"))
	}))
	const want = `"a" "a" "b%41/c" "/b%41/c"`
	if got := request(engine, "/users/a%2Fb%2541/c").Body.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestValueOfAnyKey(t *testing.T) {
	t.Parallel()
	type key struct{}
	engine := gin.New()
	engine.Use(func(c *gin.Context) { c.Set(key{}, "typed"); c.Set("name", "named") })
	engine.GET("/", told(func(q gate.Request) string {
		return fmt.Sprint(q.Value(key{}), q.Value("name"), q.Value("none"))
	}))
	if got := request(engine, "/").Body.String(); got != "typednamed<nil>" && got != "typed named <nil>" {
		t.Errorf("got %q, want \"typed\", \"named\" and nil", got)
	}
}
