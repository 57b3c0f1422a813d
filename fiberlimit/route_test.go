package fiberlimit_test

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/fiberlimit"
	"github.com/neap-go/neap/internal/gatefake"
)

// told is a gate that answers with what report says of the request.
func told(report func(gate.Request) string) fiber.Handler {
	return fiberlimit.Handler(say(report))
}

func ask(t *testing.T, app *fiber.App, target string, header ...string) string {
	t.Helper()
	r := httptest.NewRequest("GET", target, nil)
	r.RequestURI = target
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	response, err := app.Test(r, -1)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(response.Body)
	return string(body)
}

// Every parameter that Fiber knows of stands in Route under its name, or a
// gate would refuse to key by it.
func TestPatterns(t *testing.T) {
	t.Parallel()
	report := func(q gate.Request) string {
		c, _ := fiberlimit.Context(q)
		values := []string{q.Route()}
		for _, name := range c.Route().Params {
			if name[0] == '*' || name[0] == '+' {
				name = "..."
			}
			if !strings.Contains(q.Route(), "{"+name+"}") {
				t.Errorf("%s: the route %s lacks {%s}, want it there", c.Route().Path, q.Route(), name)
			}
			values = append(values, name+"="+q.Param(name))
		}
		return strings.Join(values, " ")
	}
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
			app := fiber.New()
			app.Get(c.path, told(report))
			if got := ask(t, app, c.target); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// routeAndID tells where a gate is, and what it takes for the id.
func routeAndID(q gate.Request) string { return q.Route() + " " + q.Param("id") }

func TestWhereTheRouteIsKnown(t *testing.T) {
	t.Parallel()
	ok := func(c *fiber.Ctx) error { return c.SendString("ok") }
	const known, unknown = "/users/{id} 7", " "
	for _, c := range []struct {
		name, want string
		mount      func(app *fiber.App, noting fiber.Handler)
	}{
		{"Use", unknown, func(app *fiber.App, noting fiber.Handler) { app.Use(noting).Get("/users/:id", ok) }},
		{"UsePrefix", unknown, func(app *fiber.App, noting fiber.Handler) {
			app.Use("/users/:id", noting).Get("/users/:id", ok)
		}},
		{"UseOfAGroup", unknown, func(app *fiber.App, noting fiber.Handler) {
			app.Group("/users").Use(noting)
			app.Get("/users/:id", ok)
		}},
		{"HandlerOfAGroup", unknown, func(app *fiber.App, noting fiber.Handler) {
			app.Group("/users", noting).Get("/:id", ok)
		}},
		{"UseOfAMountedApp", unknown, func(app *fiber.App, noting fiber.Handler) {
			sub := fiber.New()
			sub.Use(noting).Get("/:id", ok)
			app.Mount("/users", sub)
		}},
		{"UseAfterRoutes", unknown, func(app *fiber.App, noting fiber.Handler) {
			app.Get("/other", ok).Use(noting, ok)
		}},
		{"Route", known, func(app *fiber.App, noting fiber.Handler) { app.Get("/users/:id", noting, ok) }},
		{"AllMethods", known, func(app *fiber.App, noting fiber.Handler) { app.All("/users/:id", noting, ok) }},
		{"RouteOfAGroup", known, func(app *fiber.App, noting fiber.Handler) {
			app.Group("/users").Get("/:id", noting, ok)
		}},
		{"RouteOfAMountedApp", known, func(app *fiber.App, noting fiber.Handler) {
			sub := fiber.New()
			sub.Get("/:id", noting, ok)
			app.Mount("/users", sub)
		}},
		{"RouteBetweenUses", known, func(app *fiber.App, noting fiber.Handler) {
			app.Use("/users", func(c *fiber.Ctx) error { return c.Next() })
			app.Get("/users/:id", noting, ok)
			app.Use(ok)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := "nothing"
			app := fiber.New()
			c.mount(app, fiberlimit.Middleware(gatefake.Func(func(q gate.Request) gate.Pass {
				got = routeAndID(q)
				return gate.Pass{}
			})))
			if body := ask(t, app, "/users/7"); body != "ok" || got != c.want {
				t.Errorf("got %q, and the gate was told %q, want %q", body, got, c.want)
			}
		})
	}
}

// Under UnescapePath Fiber makes a space of a plus sign, and the handler knows no
// difference.
func TestParametersAreThoseOfTheHandlerUnderUnescapePath(t *testing.T) {
	t.Parallel()
	app := fiber.New(fiber.Config{UnescapePath: true})
	app.Get("/users/:id", told(func(q gate.Request) string {
		c, _ := fiberlimit.Context(q)
		key, _ := gate.ByParam("id")(q)
		return c.Params("id") + " " + q.Param("id") + " " + key
	}))
	for target, want := range map[string]string{
		"/users/a+b":       "a b a b param:id=a b",
		"/users/a%20b":     "a b a b param:id=a b",
		"/users/100%2525":  "100%25 100%25 param:id=100%",
		"/users/%25252541": "%252541 %252541 param:id=A",
	} {
		if got := ask(t, app, target); got != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}
