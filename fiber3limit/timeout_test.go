package fiber3limit_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/timeout"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/fiber3limit"
	"github.com/neap-go/neap/internal/gatefake"
)

// own is a key of the context that a gate makes.
type own struct{}

// If a handler runs on after a timeout, the gate is not told how it ended, whatever the
// client got.
func TestHandlerThatRunsOn(t *testing.T) {
	t.Parallel()
	for name, inside := range map[string]bool{"GateOutside": false, "GateInside": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proceed, ended, left := make(chan struct{}), make(chan struct{}), make(chan *gate.Reply, 2)
			middleware := fiber3limit.Middleware(gatefake.Func(func(q gate.Request) gate.Pass {
				return gate.Pass{Context: context.WithValue(q.Context(), own{}, true), Capture: 10, Leave: func(r *gate.Reply) { left <- r }}
			}))
			handler := func(c fiber.Ctx) error {
				defer close(ended)
				<-proceed
				if c.Context().Value(own{}) == nil {
					t.Error("the handler lost the context that the gate made, want it to stay")
				}
				return c.SendString("late")
			}
			limits := timeout.Config{Timeout: time.Millisecond}
			app := fiber.New()
			if inside {
				app.Get("/", timeout.New(middleware, limits), handler)
			} else {
				app.Get("/", middleware, timeout.New(handler, limits))
			}
			response, err := app.Test(httptest.NewRequest("GET", "/", nil), fiber.TestConfig{Timeout: time.Minute})
			if err != nil || response.StatusCode != fiber.StatusRequestTimeout {
				t.Fatalf("got %v, %v, want %d", response, err, fiber.StatusRequestTimeout)
			}
			if got := len(left); got > 0 == inside {
				t.Errorf("while the handler runs, the gate was left %d times, want it to be left: %t", got, !inside)
			}
			close(proceed)
			<-ended
			if reply := <-left; reply != nil {
				t.Errorf("the gate was told of %+v, want nothing", reply)
			}
		})
	}
}

// The time may run out while the application's ErrorHandler answers for a handler. What
// then exists of the answer to the client says nothing about what the handler has done.
func TestTimeoutDuringTheErrorHandler(t *testing.T) {
	t.Parallel()
	ctx, over := context.WithCancel(t.Context()) // which the timeout takes for its own
	defer over()
	proceed, left := make(chan struct{}), make(chan *gate.Reply)
	app := fiber.New(fiber.Config{ErrorHandler: func(fiber.Ctx, error) error {
		over()
		<-proceed
		return nil
	}})
	app.Use(func(c fiber.Ctx) error {
		c.SetContext(ctx)
		return c.Next()
	})
	guarded := fiber3limit.Middleware(gatefake.Func(func(gate.Request) gate.Pass {
		return gate.Pass{Leave: func(r *gate.Reply) { left <- r }}
	}))
	limits := timeout.Config{Timeout: time.Hour, OnTimeout: func(c fiber.Ctx) error {
		err := c.SendStatus(fiber.StatusRequestTimeout)
		close(proceed)
		if reply := <-left; reply != nil {
			t.Errorf("the gate was told of %+v, want nothing", reply)
		}
		return err
	}}
	app.Get("/", timeout.New(guarded, limits), func(fiber.Ctx) error { return errOfHandler })
	response, err := app.Test(httptest.NewRequest("GET", "/", nil), fiber.TestConfig{Timeout: time.Minute})
	if err != nil || response.StatusCode != fiber.StatusRequestTimeout {
		t.Fatalf("got %v, %v, want %d", response, err, fiber.StatusRequestTimeout)
	}
}

var errOfHandler = errors.New("the handler's error")
