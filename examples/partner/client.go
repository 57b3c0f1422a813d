package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/examples/internal/backend"
	"github.com/neap-go/neap/nethttp"
)

// newClient returns a client that keeps to what a partner allows, together with all
// processes that have the same prefix on the same Redis.
func newClient(rdb script.Client, prefix string, most int64) (*http.Client, error) {
	st, err := store.Open(rdb, &store.Options{Prefix: prefix})
	if err != nil {
		return nil, err
	}
	quota := limit.TokenBucket{Name: "quota", Rate: most - 10, Per: window, Burst: 10} // evenly: never more than most in a window
	limiter, err := limit.New(st, "partner", []limit.Policy{quota}, &limit.Options{Fail: store.FailClosed, Holds: true})
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: nethttp.NewTransport(nil, limiter, nil, &nethttp.TransportOptions{Wait: 10 * time.Second})}, nil
}

// send is what each process does: it sends requests, two at a time, as long as it shall.
func send(ctx context.Context, o *options) error {
	rdb, err := backend.Open(o.redis, o.cluster)
	if err != nil {
		return err
	}
	defer rdb.Close()
	client, err := newClient(rdb, prefixOf(o.process), allowed*int64(o.share)/100)
	if err != nil {
		return err
	}
	ctx, end := context.WithTimeout(ctx, o.lasts)
	defer end()
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for ctx.Err() == nil {
				err := get(ctx, client, o.process)
				var denied *limit.LimitedError
				switch {
				case err == nil:
				case errors.As(err, &denied):
					pause(ctx, min(denied.RetryAfter, time.Second))
				default: // Redis or the partner does not answer
					pause(ctx, time.Second)
				}
			}
		})
	}
	all.Wait()
	return nil
}

func get(ctx context.Context, client *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	a, err := client.Do(r)
	if err != nil {
		return err
	}
	return a.Body.Close()
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// prefixOf returns the prefix of a run's keys, from the address of its partner.
func prefixOf(partner string) string {
	u, err := url.Parse(partner)
	if err != nil {
		return "neap-partner"
	}
	return "neap-partner-" + strings.ReplaceAll(u.Host, ":", "-")
}
