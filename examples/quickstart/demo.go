package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/examples/internal/backend"
)

// demoBudget keeps a machine that is busy with other things from turning a
// decision into a 503: the demo is about what is decided.
const demoBudget = 20 * time.Second

// demo visits the frameworks in turn. Its error says what was not as expected.
func demo(ctx context.Context, stdout io.Writer, s *backend.Backend, frameworks []framework, addr string) error {
	out := newScreen(stdout)
	out.linef("Limits kept in %s.", s.Where)
	began := time.Now()
	var faults []error
	for _, f := range frameworks {
		prefix := "neap-demo-" + f.name + "-" + strings.ToLower(rand.Text()[:8])
		t := tour{framework: f, addr: addr, rdb: s.Redis, prefix: prefix, routes: demoRoutes, steps: allSteps()}
		if err := t.run(ctx, out); err != nil {
			faults = append(faults, err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted in %s", f.title)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("not as expected:\n%w", err)
	}
	out.linef("")
	out.linef("Every count is as expected. It took %s.", time.Since(began).Round(100*time.Millisecond))
	out.linef("To send requests of your own: go run ./examples/quickstart -serve")
	return nil
}

func demoRoutes(w *wiring) []route { return append(routes(w), timelineRoutes(w)...) }

// tour is the demo of one framework.
type tour struct {
	framework framework
	addr      string
	rdb       redis.UniversalClient
	prefix    string // of the keys of this tour alone
	routes    func(*wiring) []route
	steps     []step
}

// run serves the routes, visits them, and removes the keys. Its error says
// what was not as expected.
func (t tour) run(ctx context.Context, out *screen) error {
	v := newVisit(out, t.framework.title)
	st, err := store.Open(t.rdb, &store.Options{Prefix: t.prefix})
	if err != nil {
		return err
	}
	w := &wiring{redis: st, budget: demoBudget, shadowed: func(string, string) { v.shadowed.Add(1) }}
	routes := t.routes(w)
	if w.err != nil {
		return w.err
	}
	h, err := t.framework.listen(ctx, t.addr, routes)
	if err != nil {
		return err
	}
	v.url = h.URL
	out.title(t.framework.title)
	err = v.run(ctx, t.steps)
	v.http.CloseIdleConnections()
	return errors.Join(err, h.Stop(ctx, longest+5*time.Second), backend.RemoveKeys(ctx, t.rdb, t.prefix))
}
