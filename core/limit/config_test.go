package limit_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

func TestBadConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	var none *redis.Client
	good := []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Second}}
	type config struct {
		rdb      script.Client
		name     string
		policies []limit.Policy
		opts     *limit.Options
	}
	for name, c := range map[string]struct {
		config
		want []string // field and remedy
	}{
		"no policies":      {config{rdb, "n", nil, nil}, []string{"policies", "at least one"}},
		"nil policy":       {config{rdb, "n", []limit.Policy{nil}, nil}, []string{"policies[0]", "nil"}},
		"typed nil policy": {config{rdb, "n", []limit.Policy{(*limit.FixedWindow)(nil)}, nil}, []string{"policies[0]", "nil"}},
		"empty name":       {config{rdb, "", good, nil}, []string{"name", "1 to 64"}},
		"name with colon":  {config{rdb, "a:b", good, nil}, []string{"name", "1 to 64"}},
		"negative budget":  {config{rdb, "n", good, &limit.Options{Budget: -1}}, []string{"Budget is -1ns: use 1ms"}},
		"bare budget":      {config{rdb, "n", good, &limit.Options{Budget: 50}}, []string{"Budget is 50ns: use 1ms to 1h0m0s"}},
		"long budget":      {config{rdb, "n", good, &limit.Options{Budget: 2 * time.Hour}}, []string{"Budget is 2h0m0s: use 1ms"}},
		"negative local":   {config{rdb, "n", good, &limit.Options{MaxLocal: -1}}, []string{"MaxLocal is -1: use a positive"}},
		"negative waiting": {config{rdb, "n", good, &limit.Options{MaxWaiting: -1}}, []string{"MaxWaiting is -1: use a positive"}},
		"nil client":       {config{nil, "n", good, nil}, []string{"rdb is nil"}},
		"typed nil client": {config{none, "n", good, nil}, []string{"rdb", "pass a connected"}},
		"pipeline":         {config{rdb.Pipeline(), "n", good, nil}, []string{"pipeline"}},
		"two names": {config{rdb, "n", []limit.Policy{
			limit.FixedWindow{Name: "x", Limit: 1, Window: time.Second}, limit.SlidingLog{Name: "x", Limit: 1, Window: time.Second},
		}, nil}, []string{"policies[1]", `"x" is used twice`}},
		"one policy twice": {config{rdb, "n", []limit.Policy{good[0], good[0]}, nil}, []string{"used twice"}},
		"policy name":      {config{rdb, "n", []limit.Policy{limit.FixedWindow{Name: `a"b`, Limit: 1, Window: time.Second}}, nil}, []string{"Name", "1 to 64"}},
		"everything at once": {
			config{none, "a b", []limit.Policy{limit.TokenBucket{Burst: -1}}, &limit.Options{Budget: -1}},
			[]string{"Rate", "Per", "Burst", "name", "Budget", "rdb"},
		},
	} {
		_, err := limit.New(c.rdb, c.name, c.policies, c.opts)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got the error %v, want one that says %q", name, err, want)
			}
		}
	}
	if _, err := limit.NewLocal("a b", nil, nil); err == nil || !strings.Contains(err.Error(), "name") {
		t.Errorf("NewLocal with the name \"a b\": got %v, want an error about the name", err)
	}
}

func TestBadPoliciesAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy limit.Policy
		want   []string
	}{
		{limit.TokenBucket{}, []string{"Rate is 0", "Per is 0s"}},
		{limit.TokenBucket{Rate: -1, Per: -1, Burst: -1}, []string{"Rate is -1", "Per is -1ns", "Burst is -1"}},
		{limit.TokenBucket{Rate: 10, Per: 1}, []string{"Per is 1ns", "at least a millisecond", "write 1 * time.Second"}},
		{limit.TokenBucket{Rate: 1, Per: time.Millisecond - 1}, []string{"Per is 999.999µs"}},
		{limit.TokenBucket{Rate: 1, Per: math.MaxInt64, Burst: 100}, []string{"exact arithmetic", "Burst"}},
		{limit.TokenBucket{Rate: math.MaxInt64, Per: time.Second}, []string{"exact arithmetic"}},
		{limit.TokenBucket{Rate: 1_000_003, Per: time.Second, Burst: math.MaxInt64}, []string{"exact arithmetic"}},
		{limit.TokenBucket{Rate: 1, Per: 200 * 365 * 24 * time.Hour, Burst: 2}, []string{"exact arithmetic"}},
		{limit.FixedWindow{}, []string{"Limit is 0", "Window is 0s"}},
		{limit.FixedWindow{Limit: 1, Window: time.Microsecond}, []string{"Window", "millisecond"}},
		{limit.FixedWindow{Limit: 1, Window: time.Second + time.Microsecond}, []string{"Window", "whole number of milliseconds"}},
		{limit.FixedWindow{Limit: math.MaxInt64, Window: time.Second}, []string{"exact arithmetic", "2^52"}},
		{limit.SlidingWindow{Limit: -5, Window: time.Millisecond + 1}, []string{"Limit is -5", "milliseconds"}},
		{limit.SlidingWindow{Limit: 100_000_000, Window: time.Second}, []string{"exact arithmetic", "FixedWindow"}},
		{limit.SlidingWindow{Limit: 10_000_000, Window: 30 * 24 * time.Hour}, []string{"exact arithmetic"}},
		{limit.SlidingWindow{Limit: 1, Window: 200 * 365 * 24 * time.Hour}, []string{"146 years"}},
		{limit.SlidingLog{Limit: 100_001, Window: time.Second}, []string{"at most 100000", "SlidingWindow"}},
		{limit.SlidingLog{Limit: 1, Window: time.Second + 1}, []string{"Window", "microseconds"}},
		{limit.SlidingLog{Limit: 1, Window: 60}, []string{"Window is 60ns", "at least a millisecond"}},
		{limit.SlidingLog{Limit: 1, Window: 100 * 365 * 24 * time.Hour}, []string{"35 years"}},
	} {
		_, err := limit.NewLocal("n", []limit.Policy{c.policy}, nil)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: got the error %v, want one that says %q", c.policy, err, want)
			}
		}
	}
}

// TestEachFaultNamesItsPolicy: an error about several policies has a line for each
// fault, and the line says which policy.
func TestEachFaultNamesItsPolicy(t *testing.T) {
	t.Parallel()
	_, err := limit.NewLocal("n", []limit.Policy{
		limit.TokenBucket{Name: "a b", Rate: -1, Per: 1, Burst: -1},
		limit.Shadow(limit.FixedWindow{}),
	}, nil)
	if err == nil {
		t.Fatal("NewLocal with bad policies: got no error, want one")
	}
	lines := strings.Split(strings.TrimPrefix(err.Error(), "limit.NewLocal: "), "\n")
	for i, want := range []string{
		"policies[0] (limit.TokenBucket): Rate is -1", "policies[0] (limit.TokenBucket): Per is 1ns",
		"policies[0] (limit.TokenBucket): Burst is -1", "policies[0] (limit.TokenBucket): Name is \"a b\"",
		"policies[1] (limit.FixedWindow): Limit is 0", "policies[1] (limit.FixedWindow): Window is 0s",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d of the error: want it to begin with %q, got\n%v", i, want, err)
		}
	}
}

func TestOptionsAreCopied(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	policies := []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}
	opts := &limit.Options{Budget: 5 * time.Second, Fail: store.FailClosed}
	l := must(limit.New(rdb, "copied", policies, opts))(t)
	for i := range 2 {
		if d, err := l.Take(t.Context(), "bob"); err != nil || d.Allowed != (i == 0) {
			t.Errorf("take %d: got %+v, %v, want allowed %t", i, d, err, i == 0)
		}
		policies[0] = limit.FixedWindow{Limit: 5, Window: time.Hour}
		opts.Fail, opts.Budget = store.FailOpen, time.Nanosecond
	}
}

func TestWhatHasNoNameIsNamedByItsNumbers(t *testing.T) {
	t.Parallel()
	m, rdb := redistest.Miniredis(t)
	onRedis := must(limit.New(rdb, "zero", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, closed(time.Minute)))(t)
	must(onRedis.Take(t.Context(), "s"))(t)
	if keys := m.Keys(); !slices.Equal(keys, []string{"neap:limit:zero:{s}:window-1-1h"}) {
		t.Errorf("got the keys %q, want neap:limit:zero:{s}:window-1-1h", keys)
	}
	l := must(limit.NewLocal("zero", []limit.Policy{limit.TokenBucket{Rate: 9, Per: time.Minute}}, nil))(t)
	d, err := l.Peek(t.Context(), "s")
	if err != nil || d.Limit != 9 || d.Policy != "bucket-9-1m-9" {
		t.Errorf("a peek at a bucket without a name: got %+v, %v, want limit 9 and policy bucket-9-1m-9", d, err)
	}
	for d, want := range map[time.Duration]string{
		90 * time.Second: "1m30s", time.Hour: "1h", 24 * time.Hour: "24h", 10 * time.Second: "10s",
		1500 * time.Nanosecond: "1.5us", time.Hour + time.Second: "1h0m1s",
	} {
		if got := keyspace.Span(d); got != want {
			t.Errorf("keyspace.Span(%v): got %s, want %s", d, got, want)
		}
	}
}
