package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// unused is a client that sends nothing in its test.
func unused(t *testing.T) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

func TestFaultsOfOptions(t *testing.T) {
	t.Parallel()
	rdb := unused(t)
	var none *redis.Client
	var noStore *store.Store
	for name, c := range map[string]struct {
		rdb  script.Client
		opts *store.Options
		want []string // field and remedy
	}{
		"long prefix":      {rdb, &store.Options{Prefix: strings.Repeat("p", 65)}, []string{"Prefix", "up to 64"}},
		"prefix braces":    {rdb, &store.Options{Prefix: "a{b}"}, []string{"Prefix", "without spaces and braces"}},
		"prefix space":     {rdb, &store.Options{Prefix: "a b"}, []string{"Prefix"}},
		"prefix newline":   {rdb, &store.Options{Prefix: "a\n"}, []string{"Prefix"}},
		"short secret":     {rdb, &store.Options{SubjectSecret: make([]byte, 15)}, []string{"SubjectSecret has 15 bytes", "at least 16"}},
		"empty secret":     {rdb, &store.Options{SubjectSecret: []byte{}}, []string{"SubjectSecret has 0 bytes", "nil for none"}},
		"negative budget":  {rdb, &store.Options{Budget: -1}, []string{"Budget is -1ns", "use 1ms to 1h0m0s, or 0"}},
		"long budget":      {rdb, &store.Options{Budget: time.Hour + 1}, []string{"Budget is 1h0m0.000000001s"}},
		"negative contact": {rdb, &store.Options{FirstContact: -1}, []string{"FirstContact is -1ns", "use up to 1m0s, or 0 for 1s"}},
		"long contact":     {rdb, &store.Options{FirstContact: time.Minute + 1}, []string{"FirstContact is 1m0.000000001s"}},
		"nil client":       {nil, nil, []string{"rdb is nil", "pass a connected"}},
		"typed nil":        {none, nil, []string{"rdb is a nil", "pass a connected"}},
		"zero client":      {&redis.Client{}, nil, []string{"rdb is a zero", "redis.NewClient"}},
		"pipeline":         {rdb.Pipeline(), nil, []string{"pipeline", "pass the client itself"}},
		"nil store":        {noStore, nil, []string{"rdb is a nil or zero Store", "store.Open"}},
		"zero store":       {&store.Store{}, nil, []string{"rdb is a nil or zero Store", "store.Open"}},
		"all of it wrong":  {nil, &store.Options{Prefix: "{", SubjectSecret: []byte("s"), Budget: -1}, []string{"rdb", "Prefix", "SubjectSecret", "Budget"}},
	} {
		st, err := store.Open(c.rdb, c.opts)
		if st != nil {
			t.Errorf("%s: got a store, want none", name)
		}
		for _, want := range append(c.want, "store.Open: ") {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got the error %v, want one that says %q", name, err, want)
			}
		}
		if c.opts == nil && !errors.Is(err, script.ErrClient) {
			t.Errorf("%s: got %v, want an ErrClient", name, err)
		}
	}
}

// constructors are the constructors of all primitives.
var constructors = map[string]func(script.Client) error{
	"limit.New": func(rdb script.Client) error {
		_, err := limit.New(rdb, "n", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Second}}, nil)
		return err
	},
	"inflight.New": func(rdb script.Client) error { _, err := inflight.New(rdb, "n", 1, nil); return err },
	"lock.New":     func(rdb script.Client) error { _, err := lock.New(rdb, "n", nil); return err },
	"idempotency.New": func(rdb script.Client) error {
		_, err := idempotency.New(rdb, "n", idempotency.Retry{}, nil)
		return err
	},
	"stock.New":        func(rdb script.Client) error { _, err := stock.New(rdb, "n", nil); return err },
	"script.NewRunner": func(rdb script.Client) error { _, err := script.NewRunner(rdb, nil); return err },
}

// TestAStoreThatWasNotMadeIsRefused: if the error of Open was not checked, the next
// constructor reports it.
func TestAStoreThatWasNotMadeIsRefused(t *testing.T) {
	t.Parallel()
	for name, construct := range constructors {
		for _, st := range []*store.Store{nil, {}} {
			if err := construct(st); !errors.Is(err, script.ErrClient) {
				t.Errorf("%s of a store that was not made: got %v, want an ErrClient", name, err)
			}
		}
	}
}

// TestAStoreHidesNoRing: what refuses a Ring also refuses a store of a Ring, and a client
// that embeds one.
func TestAStoreHidesNoRing(t *testing.T) {
	t.Parallel()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	t.Cleanup(func() { ring.Close() })
	st, err := store.Open(ring, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, rdb := range []script.Client{st, ring, &struct{ redis.UniversalClient }{ring}} {
		for _, name := range []string{"lock.New", "idempotency.New", "stock.New"} {
			err := constructors[name](rdb)
			if !errors.Is(err, script.ErrClient) || !strings.Contains(err.Error(), "rdb is a Ring") || !strings.Contains(err.Error(), "use a Client, a failover Client or a ClusterClient") {
				t.Errorf("%s of a %T of a Ring: got %v, want that it is a Ring, and what to use", name, rdb, err)
			}
		}
	}
	for _, name := range []string{"limit.New", "inflight.New"} {
		if err := constructors[name](st); err != nil {
			t.Errorf("%s of a store of a Ring: got %v, want no error", name, err)
		}
	}
}

// TestAStoreIsNotWrapped: a struct that embeds a store would lose its options, including
// the secret.
func TestAStoreIsNotWrapped(t *testing.T) {
	t.Parallel()
	wrapped := struct{ *store.Store }{storetest.At(t, unused(t), "p")}
	for name, construct := range constructors {
		if err := construct(wrapped); !errors.Is(err, script.ErrClient) || !strings.Contains(err.Error(), "pass the store itself") {
			t.Errorf("%s of a struct around a store: got %v, want an ErrClient", name, err)
		}
	}
	if _, err := store.Open(wrapped, nil); !errors.Is(err, script.ErrClient) {
		t.Errorf("Open of a struct around a store: got %v, want an ErrClient", err)
	}
}

// TestOptionsReachEveryPrimitive: each key begins with the prefix, and the secret hides
// each subject.
func TestOptionsReachEveryPrimitive(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
	t.Cleanup(func() { rdb.Close() })
	secret := []byte("0123456789abcdef")
	opts := &store.Options{Prefix: "mine", SubjectSecret: secret, Budget: 10 * time.Second}
	st, err := store.Open(rdb, opts)
	if err != nil {
		t.Fatal(err)
	}
	clear(secret) // they were copied
	opts.Prefix = "theirs"
	before := m.Keys()
	for name, ask := range map[string]func(ctx context.Context) error{
		"limit": func(ctx context.Context) error {
			l, err := limit.New(st, "n", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Minute}}, &limit.Options{Fail: store.FailClosed})
			if err != nil {
				return err
			}
			_, err = l.Take(ctx, "alice")
			return err
		},
		"inflight": func(ctx context.Context) error {
			c, err := inflight.New(st, "n", 1, &inflight.Options{Fail: store.FailClosed})
			if err != nil {
				return err
			}
			s, err := c.Try(ctx, "alice")
			if err == nil {
				t.Cleanup(func() { _ = s.Release(context.Background()) })
			}
			return err
		},
		"lock": func(ctx context.Context) error {
			l, err := lock.New(st, "n", &lock.Options{NoRenewal: true})
			if err != nil {
				return err
			}
			_, err = l.As("alice").Try(ctx, "alice")
			return err
		},
		"guard": func(ctx context.Context) error {
			g, err := idempotency.New(st, "n", idempotency.Retry{}, nil)
			if err != nil {
				return err
			}
			_, err = g.Do(ctx, "alice", func(context.Context) ([]byte, error) { return nil, nil })
			return err
		},
		"stock": func(ctx context.Context) error {
			s, err := stock.New(st, "n", nil)
			if err != nil {
				return err
			}
			if _, err := s.Open(ctx, "alice", 1, time.Now().Add(time.Hour)); err != nil {
				return err
			}
			_, err = s.Reserve(ctx, "alice", "alice", "alice", &stock.ReserveOptions{Confirm: true})
			return err
		},
	} {
		if err := ask(t.Context()); err != nil {
			t.Fatalf("%s: got %v, want no error", name, err)
		}
		found := false
		for _, key := range m.Keys() {
			found = found || strings.HasPrefix(key, "mine:"+name+":n:{#")
		}
		if !found {
			t.Errorf("%s: got the keys %q, want one that begins with mine:%s:n:{#", name, m.Keys(), name)
		}
	}
	for _, key := range m.Keys() {
		if text := key + m.Dump(); strings.Contains(text, "alice") {
			t.Errorf("the keys with a secret: got alice in one, want no readable subject: %s", text)
		}
	}
	if len(before) > 0 || len(m.Keys()) != 5 {
		t.Errorf("the keys: got %q, want one of each primitive", m.Keys())
	}
}

// TestARunnerHasTheBudgetOfItsStore, unless it has one of its own.
func TestARunnerHasTheBudgetOfItsStore(t *testing.T) {
	t.Parallel()
	const own = 300 * time.Millisecond
	for budget, want := range map[time.Duration]time.Duration{0: 2 * time.Second, own: own} {
		synctest.Test(t, func(t *testing.T) {
			var rdb late
			r, err := script.NewRunner(storetest.Open(t, &rdb, store.Options{Budget: 2 * time.Second}), &script.Options{Budget: budget})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Run(t.Context(), one, []string{"k"}); err != nil { // the first contact
				t.Fatal(err)
			}
			rdb.by.Store(int64(time.Hour))
			began := time.Now()
			if _, err := r.Run(t.Context(), one, []string{"k"}); err == nil || time.Since(began) != want {
				t.Errorf("a runner with a Budget of %v: got %v after %v, want an error after %v",
					budget, err, time.Since(began), want)
			}
		})
	}
}

// TestBudgetIsTheDefaultOfAll primitives without a Budget of their own.
func TestBudgetIsTheDefaultOfAll(t *testing.T) {
	t.Parallel()
	for budget, want := range map[time.Duration]time.Duration{7 * time.Second: 7 * time.Second, 0: time.Second} {
		in, err := inside.Of(storetest.Open(t, unused(t), store.Options{Budget: budget}))
		if err != nil || in.Budget(time.Second) != want {
			t.Errorf("a store with a Budget of %v: got %v, %v for what would have a second, want %v", budget, in.Budget(time.Second), err, want)
		}
	}
}
