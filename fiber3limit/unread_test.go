package fiber3limit_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/fiber3limit"
	"github.com/neap-go/neap/internal/gatefake"
)

// customCtx is a fiber.Ctx that an application has defined itself.
type customCtx struct{ fiber.DefaultCtx }

// For a request that it could not read, Fiber v3 runs the middleware of app.Use and then
// its error handler. No gate takes the part that was read for the whole request.
func TestRequestThatFiberCouldNotRead(t *testing.T) {
	t.Parallel()
	config := fiber.Config{BodyLimit: 4, ErrorHandler: func(c fiber.Ctx, err error) error {
		return c.Status(fiber.StatusTeapot).SendString(err.Error())
	}}
	for made, create := range map[string]func() *fiber.App{
		"Fiber": func() *fiber.App { return fiber.New(config) },
		"Custom": func() *fiber.App {
			return fiber.NewWithCustomCtx(func(app *fiber.App) fiber.CustomCtx { return &customCtx{*fiber.NewDefaultCtx(app)} }, config)
		},
	} {
		for name, c := range map[string]struct {
			raw    string
			status string
			broken bool
		}{
			"TooLong":    {"Content-Length: 5\r\n\r\n12345", "418", true},
			"BadTrailer": {"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nContent-Length: 1\r\n\r\n", "418", true},
			"Good":       {"Content-Length: 4\r\n\r\n1234", "200", false},
		} {
			t.Run(made+"/"+name, func(t *testing.T) {
				t.Parallel()
				left, read := make(chan *gate.Reply, 1), make(chan error, 1)
				app := create()
				app.Use(fiber3limit.Middleware(gatefake.Func(func(q gate.Request) gate.Pass {
					_, err := q.Body(100)
					read <- err
					return gate.Pass{Capture: 10, Leave: func(r *gate.Reply) { left <- r }}
				})))
				app.Post("/", func(c fiber.Ctx) error { return c.SendString("ok") })
				conn, err := net.Dial("tcp", listening(t, app))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(time.Minute))
				_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n"+c.raw)
				answer, err := io.ReadAll(conn)
				if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 "+c.status) {
					t.Errorf("the client got %q, %v, want %s", answer, err, c.status)
				}
				if err := <-read; errors.Is(err, gate.ErrBodyBroken) != c.broken {
					t.Errorf("the gate read the body with %v, want it to be broken: %t", err, c.broken)
				}
				if reply := <-left; (reply == nil) != c.broken {
					t.Errorf("the gate was left with %+v, want nothing: %t", reply, c.broken)
				}
			})
		}
	}
}
