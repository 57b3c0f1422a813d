package quickstart

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
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
func (q Quickstart) demo(ctx context.Context, stdout, stderr io.Writer, s *backend.Backend, cfg config) error {
	var other elsewhere
	if slices.ContainsFunc(cfg.frameworks, func(f Framework) bool { return f.Serve == nil }) {
		var err error
		if other, err = q.build(ctx); err != nil {
			return err
		}
		defer other.remove()
	}
	out := newScreen(stdout)
	if !cfg.part {
		out.linef("Limits kept in %s.", s.Where)
	}
	began := time.Now()
	var faults []error
	for _, f := range cfg.frameworks {
		var err error
		if f.Serve == nil {
			err = other.visit(ctx, f, s.URL, cfg.addr, stdout, stderr)
		} else {
			prefix := "neap-demo-" + f.Name + "-" + strings.ToLower(rand.Text()[:8])
			t := tour{framework: f, addr: cfg.addr, rdb: s.Redis, prefix: prefix, routes: demoRoutes, steps: allSteps()}
			err = t.run(ctx, out)
		}
		if err != nil {
			faults = append(faults, err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted in %s", f.Title)
		}
	}
	err := errors.Join(faults...)
	switch {
	case cfg.part:
		return err
	case err != nil:
		return fmt.Errorf("not as expected:\n%w", err)
	}
	out.linef("")
	out.linef("Every count is as expected. It took %s.", time.Since(began).Round(100*time.Millisecond))
	out.linef("To send requests of your own: go run ./examples/quickstart -serve")
	return nil
}

func demoRoutes(w *wiring) []Route { return append(routes(w), timelineRoutes(w)...) }

// tour is the demo of one framework.
type tour struct {
	framework Framework
	addr      string
	rdb       redis.UniversalClient
	prefix    string // of the keys of this tour alone
	routes    func(*wiring) []Route
	steps     []step
}

// run serves the routes, visits them, and removes the keys. Its error says
// what was not as expected.
func (t tour) run(ctx context.Context, out *screen) error {
	v := newVisit(out, t.framework.Title)
	st, err := store.Open(t.rdb, &store.Options{Prefix: t.prefix})
	if err != nil {
		return err
	}
	w := wire(st, demoBudget, func(string, string) { v.shadowed.Add(1) })
	routes := t.routes(w)
	if w.err != nil {
		return w.err
	}
	h, err := t.framework.listen(ctx, t.addr, routes)
	if err != nil {
		return err
	}
	v.url = h.URL
	out.title(t.framework.Title)
	err = v.run(ctx, t.steps)
	v.http.CloseIdleConnections()
	return errors.Join(err, h.Stop(ctx, longest+5*time.Second), backend.RemoveKeys(ctx, t.rdb, t.prefix))
}
