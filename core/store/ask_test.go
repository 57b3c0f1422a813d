package store_test

import (
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
)

var one = script.New("one.lua", "return 1")

// increment counts how often it ran.
var increment = script.New("increment.lua", `
local n = redis.call('INCRBY', KEYS[1], 1)
redis.call('PEXPIRE', KEYS[1], 3600000)
return n`).Batched()

func newRunner(t *testing.T, rdb script.Client) *script.Runner {
	t.Helper()
	runner, err := script.NewRunner(rdb, nil)
	if err != nil {
		t.Fatal(err)
	}
	return runner
}

// caller returns a function that runs the script on the key.
func caller(t *testing.T, rdb script.Client, s *script.Script, key string) (ask func() error) {
	t.Helper()
	runner := newRunner(t, rdb)
	return func() error {
		_, err := runner.Run(t.Context(), s, []string{key})
		return err
	}
}

func aLimit(t *testing.T, rdb script.Client) *limit.Limiter {
	t.Helper()
	return aLimitOf(t, rdb, 1e6, nil)
}

// aLimitOf returns a limiter of n an hour.
func aLimitOf(tb testing.TB, rdb script.Client, n int64, opts *limit.Options) *limit.Limiter {
	tb.Helper()
	l, err := limit.New(rdb, "n", []limit.Policy{limit.FixedWindow{Limit: n, Window: time.Hour}}, opts)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// took asks once. It returns how long that took, and whether Redis decided.
func took(t *testing.T, l *limit.Limiter) (time.Duration, bool) {
	t.Helper()
	began := time.Now()
	d, err := l.Take(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	return time.Since(began), !d.Degraded
}
