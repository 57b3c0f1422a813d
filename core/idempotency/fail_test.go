package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// unguarded returns a Guard that runs its work while Redis cannot answer.
func unguarded(t testing.TB, g *idempotency.Guard) *idempotency.Guard {
	t.Helper()
	other, err := g.WithFail(idempotency.RunUnguarded)
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// TestRunUnguarded: Redis is away before the work begins and when it ends. The work runs.
// When Redis is back, a later caller meets the result, or nothing.
func TestRunUnguarded(t *testing.T) {
	t.Parallel()
	failed := errors.New("of fn")
	ends := map[string]func(*idempotency.Claim) ([]byte, error){
		"done": func(*idempotency.Claim) ([]byte, error) { return []byte("result"), nil },
		"nothing": func(c *idempotency.Claim) ([]byte, error) {
			return nil, c.Conclude(context.Background(), idempotency.NothingDone())
		},
		"failed": func(*idempotency.Claim) ([]byte, error) { return nil, failed },
	}
	for how, outage := range map[string][2]func(*redistest.Server, testing.TB){
		"paused":  {(*redistest.Server).Pause, (*redistest.Server).Resume},
		"stopped": {(*redistest.Server).Stop, (*redistest.Server).Start},
	} {
		for policy, its := range policies {
			t.Run(how+"/"+policy, func(t *testing.T) {
				t.Parallel()
				srv := redistest.NewStandalone(t)
				prefix := srv.Prefix(t)
				g := unguarded(t, guardOf(t, srv.Client(t), prefix, its, &idempotency.Options{Budget: 2 * time.Second}))
				other := guardOf(t, srv.Client(t), prefix, its, nil)
				warm(t, g, other)
				outage[0](srv, t)
				for end, does := range ends {
					ran := 0
					_, err := g.Do(t.Context(), end, func(ctx context.Context) ([]byte, error) {
						ran++
						c, ok := idempotency.FromContext(ctx)
						if !ok || !isScripts(c.Unguarded()) || c.Fence() != 0 || c.Attempt() != 0 || c.Err() != nil || c.Renew(ctx) != nil {
							t.Errorf("%s: got a claim %t with the fence %d at attempt %d, %v, want one without both",
								end, ok, c.Fence(), c.Attempt(), c.Unguarded())
						}
						return does(c)
					})
					if ran != 1 || !isScripts(err) || errors.Is(err, failed) != (end == "failed") {
						t.Errorf("%s: got %d runs and %v, want 1, and an error of a script", end, ran, err)
					}
				}
				if s := g.Stats(); s.Failed != 3 || s.Unguarded != 3 || s.Begun != 0 || s.Running != 0 {
					t.Errorf("got stats %+v, want 3 failed and unguarded, and none begun or running", s)
				}
				outage[1](srv, t)
				isDone(t, soon, other, "done", "result")
				left(t, g)
				for _, end := range []string{"nothing", "failed"} {
					r, err := other.Inspect(t.Context(), end)
					if err != nil || r.State == idempotency.Pending {
						t.Errorf("%s: got %+v, %v, want nothing that waits for a lease", end, r, err)
					}
				}
				if s := g.Stats(); s.Flushed != 0 {
					t.Errorf("got stats %+v, want no record that counts as gone from Redis", s)
				}
			})
		}
	}
}

// TestARunWhoseAnswerIsLost: Redis begins the run, and its answer is lost. A later caller
// waits for the conclusion, and not for the lease.
func TestARunWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		for end, want := range map[string]struct {
			idempotency.Outcome
			idempotency.State
		}{
			"done":    {idempotency.DoneWith([]byte("result")), idempotency.Done},
			"nothing": {idempotency.NothingDone(), idempotency.Free},
			"unknown": {idempotency.Unknown(), idempotency.Free},
		} {
			lossy := &lost{UniversalClient: rdb, says: io.EOF}
			g := unguarded(t, guard(t, lossy, prefix, &idempotency.Options{Budget: 2 * time.Second}))
			other := guard(t, rdb, prefix, nil)
			warm(t, g, other)
			lossy.loses.Store(&beginSHA)
			answer, err := g.Begin(t.Context(), end, "")
			if err != nil || !errors.Is(answer.Claim.Unguarded(), script.ErrMaybeExecuted) {
				t.Fatalf("%s: got %+v, %v, want a claim that may be in Redis", end, answer, err)
			}
			if _, err := other.Begin(t.Context(), end, ""); !errors.Is(err, idempotency.ErrInFlight) {
				t.Errorf("%s: another caller meanwhile: got %v, want %v", end, err, idempotency.ErrInFlight)
			}
			lossy.loses.Store(nil)
			if err := answer.Claim.Conclude(t.Context(), want.Outcome); err != nil {
				t.Errorf("%s: Conclude: got %v, want no error", end, err)
			}
			if r, err := other.Inspect(t.Context(), end); err != nil || r.State != want.State {
				t.Errorf("%s: got %+v, %v, want the state %q", end, r, err, want.State)
			}
		}
	})
}

// lost is a client that runs a script and loses all of its replies.
type lost struct {
	redis.UniversalClient

	says   error
	loses  atomic.Pointer[string]
	refuse atomic.Bool // the script that completes
	gone   atomic.Bool
	calls  atomic.Int64
}

func (l *lost) Process(ctx context.Context, cmd redis.Cmder) error {
	l.calls.Add(1)
	if l.gone.Load() || l.refuse.Load() && strings.Contains(cmd.String(), completeSHA) {
		cmd.SetErr(l.says)
		return l.says
	}
	err := l.UniversalClient.Process(ctx, cmd)
	if sha := l.loses.Load(); sha != nil && strings.Contains(cmd.String(), *sha) {
		cmd.SetErr(l.says)
		return l.says
	}
	return err
}

// upstream is what a proxy answers in place of a server, whether the script ran or not.
type upstream struct{}

func (upstream) Error() string { return "upstream failure" }
func (upstream) RedisError()   {}

// TestUnguardedRunsBeyondTheRoom: Redis has begun more runs than neap can conclude later.
// It gives back the others, so that none of them waits for its lease.
func TestUnguardedRunsBeyondTheRoom(t *testing.T) {
	t.Parallel()
	if redistest.Ops(1000) < 1000 {
		t.Skip("it takes half a minute: make full runs it")
	}
	const runs = 2200 // 1,000 that are repeated, 1,000 that are tried once, and more
	_, rdb := redistest.Miniredis(t)
	lossy := &lost{UniversalClient: rdb, says: upstream{}} // with io.EOF, calls would be held back
	g := unguarded(t, guard(t, lossy, "p", &idempotency.Options{Lease: time.Hour, Budget: 300 * time.Millisecond}))
	other := guard(t, rdb, "p", nil)
	warm(t, g, other)
	lossy.loses.Store(&beginSHA)
	lossy.refuse.Store(true)
	var running sync.WaitGroup
	turns := make(chan struct{}, 100) // each run waits for its budget
	for i := range runs {
		turns <- struct{}{}
		running.Go(func() {
			if _, err := g.Do(t.Context(), fmt.Sprint(i), func(context.Context) ([]byte, error) { return nil, nil }); !isScripts(err) {
				t.Errorf("run %d: got %v, want an error of a script", i, err)
			}
			<-turns
		})
	}
	running.Wait()
	lossy.refuse.Store(false)
	lossy.loses.Store(nil)
	var states map[idempotency.State]int
	redistest.Await(t, 2*time.Minute, "the end of all runs", func() bool {
		states = map[idempotency.State]int{}
		for i := range runs {
			r, err := other.Inspect(t.Context(), fmt.Sprint(i))
			if err != nil {
				t.Error(err)
			}
			states[r.State]++
		}
		return states[idempotency.Pending] == 0
	})
	if states[idempotency.Done] < 1000 || states[idempotency.Doubtful]+states[idempotency.NoResult] > 0 {
		t.Errorf("got %v, want each done, free or unknown, at least 1,000 of them done", states)
	}
}

// TestWhatDoesNotRunUnguarded: Redis has answered, or the caller has gone.
func TestWhatDoesNotRunUnguarded(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		lossy := &lost{UniversalClient: rdb, says: io.EOF}
		closed := guard(t, lossy, prefix, nil)
		g := unguarded(t, closed)
		warm(t, g)
		if err := admin.Set(t.Context(), nameOf(prefix, "foreign"), "x", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Begin(t.Context(), "foreign", ""); !errors.Is(err, script.ErrFailed) {
			t.Errorf("a record of something else: got %v, want %v", err, script.ErrFailed)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.Begin(ctx, "canceled", ""); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that has gone: got %v, want %v", err, context.Canceled)
		}
		begin(t, closed, "held", "")
		before, waiting := lossy.calls.Load(), make(chan error, 1)
		go func() {
			_, err := g.Await(t.Context(), "held", "")
			waiting <- err
		}()
		redistest.Await(t, soon, "a caller that waits", func() bool { return lossy.calls.Load() > before+1 })
		lossy.gone.Store(true)
		if err := <-waiting; !isScripts(err) {
			t.Errorf("an outage while another caller runs: got %v, want an error of a script", err)
		}
		if _, err := closed.Begin(t.Context(), "closed", ""); !isScripts(err) {
			t.Errorf("the guard that g was made of: got %v, want an error of a script", err)
		}
		if s := g.Stats(); s.Unguarded != 0 {
			t.Errorf("got stats %+v, want none unguarded", s)
		}
	})
}

// TestWithFail: both Guards share everything else, and the mode is checked.
func TestWithFail(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	g := guard(t, rdb, "p", nil)
	claim := begin(t, unguarded(t, g), "key", "")
	if !claim.By(g) || claim.Unguarded() != nil {
		t.Errorf("got %v, want a claim of Redis that both guards have given out", claim.Unguarded())
	}
	if other, err := g.WithFail(2); other != nil || err == nil || !strings.Contains(err.Error(), "use FailClosed or RunUnguarded") {
		t.Errorf("an unknown mode: got %v, %v, want what there is", other, err)
	}
	waits, err := unguarded(t, g).WithWait(time.Second)
	if err != nil {
		t.Fatal(err)
	}
	rdb.Close()
	if answer, err := waits.Begin(t.Context(), "other", ""); err != nil || answer.Claim.Unguarded() == nil {
		t.Errorf("WithWait of WithFail: got %v, want a claim that is unguarded", err)
	}
}
