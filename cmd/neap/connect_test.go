package main

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

// TestEachClientTriesOnce: a second attempt would run a change twice, and take longer than --timeout.
func TestEachClientTriesOnce(t *testing.T) {
	t.Parallel()
	const timeout = 1234 * time.Millisecond
	address := redistest.Standalone(t).AdminURL()
	for name, url := range map[string]string{
		"one server": address, "a cluster": address + "?addr=127.0.0.1:1", "sentinels": redistest.NewSentinel(t).AdminURL(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &app{options: options{URL: url, Timeout: timeout}, system: system{env: noEnv}}
			defer a.close()
			f, err := a.connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var deadlines bool
			var retries, dials int
			var timeouts [4]time.Duration
			switch c := f.client.(type) {
			case *redis.ClusterClient:
				o := c.Options()
				deadlines, retries, dials = o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries
				timeouts = [...]time.Duration{o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout}
			case *redis.Client:
				o := c.Options()
				deadlines, retries, dials = o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries
				timeouts = [...]time.Duration{o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout}
			}
			if !deadlines || retries > 0 || dials != 1 {
				t.Errorf("got deadlines of contexts %t, %d retries and %d dials, want true, none and 1", deadlines, retries, dials)
			}
			if want := [...]time.Duration{timeout, timeout, timeout, timeout}; timeouts != want {
				t.Errorf("got the time-outs %v, want %v", timeouts, want)
			}
		})
	}
}
