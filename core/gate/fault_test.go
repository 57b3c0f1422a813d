package gate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

// TestAFaultWithoutAHookIsLogged: a gate without OnError logs its first 500 with the
// route, and without the error. One with a hook logs nothing, and neither does a refusal.
func TestAFaultWithoutAHookIsLogged(t *testing.T) { //nolint:paralleltest // it sets what is global
	guard, _ := guardsOf(t, idempotency.Reject{}, idempotency.Options{})
	wrong := failing(errors.New("secret"))
	var told hook
	enter := func(g gate.Gate) gate.Pass { return g.Enter(&request{path: "/orders", route: "/orders"}) }
	keys := 0
	enterInside := func(g gate.Gate) gate.Pass { // from the handler of another request
		keys++
		key := fmt.Sprint(keys)
		p := g.Enter(posting(key, ""))
		defer p.Leave(booked("tea"))
		inner := posting(key, "")
		inner.ctx, inner.route = p.Context, "/orders"
		return g.Enter(inner)
	}
	for name, c := range map[string]struct {
		gate  gate.Gate
		enter func(gate.Gate) gate.Pass
		want  int
	}{
		"no options":      {gate.RateLimit(hourly(t, 1), wrong, nil), enter, 1},
		"options":         {gate.RateLimit(hourly(t, 1), wrong, &gate.RateLimitOptions{}), enter, 1},
		"a hook":          {gate.RateLimit(hourly(t, 1), wrong, &gate.RateLimitOptions{OnError: told.hear}), enter, 0},
		"a refusal":       {gate.RateLimit(hourly(t, 1), failing(gate.ErrMissing), nil), enter, 0},
		"its own request": {gate.Idempotent(guard, everyone, nil), enterInside, 1},
	} {
		var log bytes.Buffer
		restore := redistest.DefaultLog(t, slog.NewTextHandler(&log, nil))
		first, second := c.enter(c.gate), c.enter(c.gate)
		restore()
		if name != "a refusal" && (status(first) != 500 || status(second) != 500) {
			t.Errorf("%s: got the replies %+v and %+v, want two of 500", name, first.Reply, second.Reply)
		}
		lines := log.String()
		if strings.Count(lines, "\n") != c.want || strings.Count(lines, "level=ERROR") != c.want ||
			strings.Count(lines, "route=/orders") != c.want || strings.Contains(lines, "secret") {
			t.Errorf("%s: two requests logged %q, want %d lines with the route and without the error", name, lines, c.want)
		}
	}
}

// TestTheLogHasTheRemedy if a key lacks the route or its parameter, and the hook has it, too.
func TestTheLogHasTheRemedy(t *testing.T) { //nolint:paralleltest // it sets what is global
	for name, c := range map[string]struct {
		key    gate.Key
		route  string
		remedy string
	}{
		"ByRoute without a route": {gate.ByRoute(), "", "mount the gate on the route itself"},
		"ByParam without a route": {gate.ByParam("id"), "", "must also tell its route to net/http, as docs/neighbours.md shows"},
		"ByParam of another name": {gate.ByParam("id"), "/orders/{order}", "name one that it has"},
		"joined":                  {gate.Join(gate.Everyone, gate.ByRoute()), "", "mount the gate on the route itself"},
	} {
		var log bytes.Buffer
		restore := redistest.DefaultLog(t, slog.NewTextHandler(&log, nil))
		p := gate.RateLimit(hourly(t, 1), c.key, nil).Enter(&request{path: "/secret", route: c.route})
		restore()
		if lines := log.String(); status(p) != 500 || strings.Count(lines, "\n") != 1 || !strings.Contains(lines, c.remedy) || strings.Contains(lines, "secret") {
			t.Errorf("%s: got %+v, and logged %q, want a 500 and a line with %q", name, p.Reply, lines, c.remedy)
		}
		if body := string(p.Reply.Body); strings.Contains(body, c.remedy) {
			t.Errorf("%s: the client got %q, want nothing of the remedy", name, body)
		}
		if _, err := c.key(&request{path: "/secret", route: c.route}); !errors.Is(err, gate.ErrWiring) || !strings.Contains(err.Error(), c.remedy) {
			t.Errorf("%s: got %v, want an ErrWiring that says %q", name, err, c.remedy)
		}
	}
}

// mute is a handler of a log that panics.
type mute struct{ slog.Handler }

func (mute) Enabled(context.Context, slog.Level) bool { panic("of the log") }

// TestAHandlerOfTheLogThatPanics changes no answer.
func TestAHandlerOfTheLogThatPanics(t *testing.T) { //nolint:paralleltest // it replaces slog.Default
	redistest.DefaultLog(t, mute{slog.Default().Handler()})
	if p := gate.RateLimit(hourly(t, 1), failing(errors.New("secret")), nil).Enter(&request{}); status(p) != 500 {
		t.Errorf("got %+v, want a 500", p.Reply)
	}
}
