package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/history"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

const (
	linearWorkers = 8
	linearKeys    = 4         // at a time
	linearLease   = time.Hour // twice of what a history may take on a busy machine
)

// linearBudgets are the budgets of the guards. The first is over before a silent server
// counts as gone, and in many pauses. The others are long enough for a busy machine.
var linearBudgets = []time.Duration{300 * time.Millisecond, time.Second, 2 * time.Second, 2 * time.Second}

// linear records a history.
type linear struct {
	*history.Recorder
	owners atomic.Int64
	tokens sync.Map // the number of each owner by its token
	keys   sync.Map // the key, by the record's name
}

// stray records a call of a script that belongs to no operation as an operation of its
// own. Such a call undoes a claim, or repeats a conclusion.
func (l *linear) stray(_ context.Context, cmd redis.Cmder, send func() (bool, error)) error {
	args := redistest.Write(cmd)
	key, _ := l.keys.Load(args[3])
	owner, asked := l.tokens.Load(args[4])
	if !asked { // the caller's time was over before it was sent, so there is nothing to undo
		_, err := send()
		return err
	}
	text := func(i int) string { return fmt.Sprintf("%s", args[i]) }
	e := abandons(owner.(int), text(5))
	if len(args) > 8 {
		e = event{"complete", []string{fmt.Sprint(owner), text(5), "1", text(7), text(8), text(9), text(10)}}
	}
	at := l.Open(linearWorkers, wish{key: key.(string), event: e, may: true}, l.Now(), word{})
	answered, err := send()
	if answered {
		l.Close(at, err == nil)
	}
	return err
}

// actor performs operations, one at a time.
type actor struct {
	id    int
	rng   *rand.Rand
	guard *idempotency.Guard
	in    *linear
	has   []holds
}

type holds struct {
	*idempotency.Claim
	owner int
}

// ask performs an operation. If it has no answer, it may happen at any time.
func (a *actor) ask(t *testing.T, key string, e event, call func(ctx context.Context) (word, error)) {
	t.Helper()
	owner := 0
	_, _ = fmt.Sscan(e.owner(), &owner)
	post := &history.Calls{Saw: func(args []any) {
		if a.in.keys.Store(args[3], key); len(args) > 4 {
			a.in.tokens.Store(args[4], owner)
		}
	}}
	called := a.in.Now()
	told, err := call(history.WithCalls(t.Context(), post))
	doubts := post.Doubts()
	failure, failed := errors.AsType[*script.Error](err)
	switch {
	case !failed && err == nil:
		a.in.Add(a.id, wish{key: key, event: e}, called, told)
	case !failed || errors.Is(failure, script.ErrFailed) || errors.Is(failure, script.ErrConfiguration):
		t.Errorf("%s: got %v, want no error, %v or %v", e.script, err, script.ErrNotExecuted, script.ErrMaybeExecuted)
	case errors.Is(failure, script.ErrMaybeExecuted):
		doubts = max(doubts, 1)
	}
	for range doubts {
		a.in.Open(a.id, wish{key: key, event: e, may: true}, called, word{})
	}
}

// says makes a word of an error that a Guard reports.
func says(err error, words map[error]string) (word, error) {
	for known, what := range words {
		if errors.Is(err, known) {
			return word{what: what}, nil
		}
	}
	return word{what: "ok"}, err
}

func (a *actor) begin(t *testing.T, key string) {
	t.Helper()
	owner := int(a.in.owners.Add(1))
	a.ask(t, key, begins(owner), func(ctx context.Context) (word, error) {
		run, err := a.guard.Begin(ctx, key, "")
		c, result := run.Claim, run.Result
		switch {
		case c != nil:
			a.has = append(a.has, holds{c, owner})
			return word{what: "claimed", fence: c.Fence(), attempt: c.Attempt()}, nil
		case err == nil:
			return word{what: "done", result: "p" + string(result)}, nil
		}
		return says(err, map[error]string{idempotency.ErrInFlight: "in flight", idempotency.ErrNoResult: "gone", idempotency.ErrInDoubt: "doubt"})
	})
}

var conclusions = map[error]string{idempotency.ErrLost: "lost"}

func (a *actor) conclude(t *testing.T, c holds, how int) {
	t.Helper()
	result := fmt.Sprint("of ", c.owner)
	e, o := completes(c.owner, c.Fence(), c.Attempt(), "p"+result), idempotency.DoneWith([]byte(result))
	switch how {
	case 0:
		e, o = abandons(c.owner, "free"), idempotency.NothingDone()
	case 1:
		e, o = abandons(c.owner, "doubt"), idempotency.Unknown()
	}
	a.ask(t, c.Key(), e, func(ctx context.Context) (word, error) { return says(c.Conclude(ctx, o), conclusions) })
}

func (a *actor) renew(t *testing.T, c holds) {
	t.Helper()
	if c.Err() != nil {
		return
	}
	a.ask(t, c.Key(), renews(c.owner), func(ctx context.Context) (word, error) {
		return says(c.Renew(ctx), map[error]string{idempotency.ErrLost: "lost", idempotency.ErrConcluded: "concluded"})
	})
}

func (a *actor) resolve(t *testing.T, key string) {
	t.Helper()
	token := int(a.in.owners.Add(1))
	result := fmt.Sprint("resolved by ", token)
	e, o := resolves(token, "done", "p"+result), idempotency.DoneWith([]byte(result))
	if a.rng.IntN(2) == 0 {
		e, o = resolves(token, "free", ""), idempotency.NothingDone()
	}
	a.ask(t, key, e, func(ctx context.Context) (word, error) {
		return says(a.guard.Resolve(ctx, key, o), map[error]string{idempotency.ErrInFlight: "in flight", idempotency.ErrNotInDoubt: "not in doubt"})
	})
}

func (a *actor) forget(t *testing.T, key string) {
	t.Helper()
	a.ask(t, key, event{script: "forget"}, func(ctx context.Context) (word, error) {
		had, err := a.guard.Forget(ctx, key)
		if !had {
			return word{what: "none"}, err
		}
		return word{what: "ok"}, err
	})
}

var stateNames = map[idempotency.State]string{
	idempotency.None: "", idempotency.Pending: "pending", idempotency.Free: "free", idempotency.Done: "done",
	idempotency.Doubtful: "doubt", idempotency.NoResult: "gone",
}

func (a *actor) inspect(t *testing.T, key string) {
	t.Helper()
	a.ask(t, key, event{script: "inspect"}, func(ctx context.Context) (word, error) {
		r, err := a.guard.Inspect(ctx, key)
		return word{what: stateNames[r.State], attempt: r.Attempt}, err
	})
}

func (a *actor) step(t *testing.T) {
	t.Helper()
	key := a.in.Key(a.rng.IntN(linearKeys))
	switch n := a.rng.IntN(20); {
	case n < 3:
		a.forget(t, key)
	case n == 3:
		a.inspect(t, key)
	case n < 6:
		a.resolve(t, key)
	case len(a.has) == 0 || len(a.has) < 3 && n < 12:
		a.begin(t, key)
	default:
		i := a.rng.IntN(len(a.has))
		if c := a.has[i]; n < 14 {
			a.renew(t, c)
		} else {
			a.has = append(a.has[:i], a.has[i+1:]...)
			a.conclude(t, c, a.rng.IntN(4))
		}
	}
}

// TestLinearizable runs 8 workers that begin, renew, complete, abandon, resolve, forget
// and inspect 4 keys at a time. Replies are lost, connections are reset, the server is
// paused, and its scripts are flushed. The results of the workers must be those of some
// order in which the operations happen one after the other.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	c := history.Plan{
		Model: linearModel, End: linearEnd, Histories: redistest.Ops(50_000) / 1000, Lease: linearLease,
		Workers: func(t *testing.T, d *history.Recorder, rdbs []*redis.Client, prefix string, seed uint64) (steps []func(*testing.T)) {
			t.Helper()
			in := &linear{Recorder: d}
			var guards []*idempotency.Guard
			for i, rdb := range rdbs {
				budget := linearBudgets[i%len(linearBudgets)]
				guards = append(guards, linearGuard(t, history.Client{Client: rdb, Recorder: d, Stray: in.stray}, prefix, budget))
			}
			for i := range linearWorkers {
				a := &actor{id: i, rng: rand.New(rand.NewPCG(seed, uint64(1+i))), in: in, guard: guards[i%len(guards)]}
				steps = append(steps, a.step)
			}
			return steps
		},
	}
	c.Run(t)
}

func linearGuard(t *testing.T, rdb script.Client, prefix string, budget time.Duration) *idempotency.Guard {
	t.Helper()
	g, err := idempotency.New(storetest.At(t, rdb, prefix), "linear", idempotency.Reject{}, &idempotency.Options{
		Budget: budget, Lease: linearLease,
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}
