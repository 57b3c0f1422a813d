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
)

// demoBudget keeps a machine that is busy with other things from turning a
// decision into a 503: the demo is about what is decided.
const demoBudget = 5 * time.Second

// demo visits the frameworks in turn. Its error says what was not as expected.
func demo(ctx context.Context, stdout io.Writer, s *store, frameworks []framework, addr string) error {
	out := newScreen(stdout)
	out.line("Limits kept in %s.", s.where)
	began := time.Now()
	var faults []error
	for _, f := range frameworks {
		prefix := "neap-demo-" + f.name + "-" + strings.ToLower(rand.Text()[:8])
		if err := visitFramework(ctx, out, s.rdb, prefix, f, addr, append(routes(), timelineRoutes()...)); err != nil {
			faults = append(faults, err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted in %s", f.title)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("not as expected:\n%w", err)
	}
	out.line("")
	out.line("Every count is as expected. It took %s.", time.Since(began).Round(100*time.Millisecond))
	out.line("To send requests of your own: go run ./examples/quickstart -serve")
	return nil
}

// visitFramework serves the routes, with keys under a prefix that nobody else
// uses, visits them, and removes the keys.
func visitFramework(
	ctx context.Context, out *screen, rdb redis.UniversalClient, prefix string,
	f framework, addr string, routes []route,
) (err error) {
	endpoints, err := guard(rdb, prefix, demoBudget, routes)
	if err != nil {
		return err
	}
	h, err := listen(ctx, f, addr, endpoints)
	if err != nil {
		return err
	}
	c := newClient(h.url)
	out.title(f.title)
	v := &visit{screen: out, client: c, framework: f.title}
	err = errors.Join(v.run(ctx), errors.Join(v.faults...))
	c.close()
	return errors.Join(err, h.stop(ctx), removeKeys(ctx, rdb, prefix))
}
