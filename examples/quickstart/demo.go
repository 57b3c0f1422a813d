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
		t := tour{
			framework: f, addr: addr,
			rdb: s.Redis, prefix: "neap-demo-" + f.name + "-" + strings.ToLower(rand.Text()[:8]),
			routes: demoRoutes(), steps: allSteps(),
		}
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

func demoRoutes() []route { return append(routes(), timelineRoutes()...) }

// tour is the demo of one framework.
type tour struct {
	framework framework
	addr      string
	rdb       redis.UniversalClient
	prefix    string // of keys that nobody else has
	routes    []route
	steps     []step
}

// run serves the routes, visits them, and removes the keys. Its error says
// what was not as expected.
func (t tour) run(ctx context.Context, out *screen) error {
	v := &visit{screen: out, framework: t.framework.title}
	st, err := store.Open(t.rdb, &store.Options{Prefix: t.prefix})
	if err != nil {
		return err
	}
	endpoints, err := wiring{
		redis: st, budget: demoBudget, shadowed: func(string, string) { v.shadowed.Add(1) },
	}.guard(t.routes)
	if err != nil {
		return err
	}
	h, err := listen(ctx, t.framework, t.addr, endpoints)
	if err != nil {
		return err
	}
	v.client = newClient(h.URL)
	out.title(t.framework.title)
	err = v.run(ctx, t.steps)
	v.client.close()
	return errors.Join(err, h.Stop(ctx, longest+5*time.Second), backend.RemoveKeys(ctx, t.rdb, t.prefix))
}
