package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// These are the points at which a process is killed.
const (
	beforeBegin    = "before-begin"
	duringBegin    = "during-begin" // Redis has executed it
	afterBegin     = "after-begin"
	inHandler      = "in-the-handler"
	afterEffect    = "after-the-side-effect"
	beforeComplete = "before-complete-is-sent"
	duringComplete = "during-complete" // Redis has executed it
	afterComplete  = "after-complete"
)

// The lease is too long to end on a busy machine: the test ends it by hand.
const crashLease, crashBudget = time.Minute, 5 * time.Second

// crashes is a child process that runs something once, whose side effect is a line of a
// file. At the given point it prints that it is there, and waits to be killed.
func crashes(words []string) {
	addr, prefix, key, file, point, policy := words[0], words[1], words[2], words[3], words[4], words[5]
	at := func(here string) {
		if here == point {
			fmt.Println(here)
			<-time.After(time.Hour)
		}
	}
	client := &halting{UniversalClient: redistest.ChildClient(addr)}
	st, err := store.Open(client, &store.Options{Prefix: prefix})
	if err != nil {
		panic(err)
	}
	g, err := idempotency.New(st, "test", policies[policy], &idempotency.Options{Lease: crashLease, Budget: crashBudget})
	if err != nil {
		panic(err)
	}
	if err := g.Warm(context.Background()); err != nil {
		panic(err)
	}
	client.before = func(sha string) {
		if sha == completeSHA {
			at(beforeComplete)
		}
	}
	client.after = func(sha string) {
		switch sha {
		case beginSHA:
			at(duringBegin)
		case completeSHA:
			at(duringComplete)
		}
	}
	at(beforeBegin)
	_, err = g.Do(context.Background(), key, func(context.Context) ([]byte, error) {
		at(afterBegin)
		at(inHandler)
		effect(file)
		at(afterEffect)
		return []byte("result"), nil
	})
	at(afterComplete)
	fmt.Println("it did not come to the point:", err)
}

// halting is a client that the test can keep from returning from a call.
type halting struct {
	redis.UniversalClient
	before, after func(sha string)
}

func (c *halting) Process(ctx context.Context, cmd redis.Cmder) error {
	sha := ""
	if words := strings.Fields(cmd.String()); len(words) > 1 && c.before != nil {
		sha = words[1]
	}
	if sha != "" {
		c.before(sha)
	}
	err := c.UniversalClient.Process(ctx, cmd)
	if sha != "" && err == nil {
		c.after(sha)
	}
	return err
}

// effect is the side effect that must not happen twice.
func effect(file string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := f.WriteString("booked\n"); err != nil {
		panic(err)
	}
}

func effects(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(text), "booked\n")
}

// TestKilledAtEachPoint kills a process with SIGKILL at each point of the flow. Another
// process then tries again, and gets the answer that the policy prescribes.
func TestKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	prefix := srv.Prefix(t)
	for _, point := range []string{
		beforeBegin, duringBegin, afterBegin, inHandler, afterEffect, beforeComplete, duringComplete, afterComplete,
	} {
		for policy, its := range policies {
			t.Run(point+"/"+policy, func(t *testing.T) {
				t.Parallel()
				key, file := point+"-"+policy, filepath.Join(t.TempDir(), "effects")
				asked := 0
				if policy == "reconcile" {
					its = idempotency.Reconcile{Find: func(_ context.Context, c *idempotency.Claim) (idempotency.Outcome, error) {
						asked++
						if c.Attempt() != 2 {
							t.Errorf("Reconcile was asked at attempt %d, want 2", c.Attempt())
						}
						if effects(t, file) > 0 {
							return idempotency.DoneWith([]byte("found")), nil
						}
						return idempotency.NothingDone(), nil
					}}
				}
				g := guardOf(t, srv.Client(t), prefix, its, &idempotency.Options{Lease: crashLease, Budget: crashBudget})
				p := redistest.StartChild(t, "crashes", srv.Addr(), prefix, key, file, point, policy)
				if line := p.Line(t); line != point {
					t.Fatalf("the child: got %q, want %q", line, point)
				}
				p.Kill()
				switch point {
				case beforeBegin, duringComplete, afterComplete: // it must not run
				default:
					lapsed(t, srv.Admin(t), prefix, key)
				}
				before := effects(t, file)
				got := retry(t, g, key, file)
				got.effects, got.asked = effects(t, file), asked
				if want := after(point, policy, before); !got.is(want) {
					t.Errorf("got %+v, want %+v", got, want)
				}
				if got.err == nil {
					return
				}
				refused(t, g, key, "", idempotency.ErrInDoubt)
				if err := g.Resolve(t.Context(), key, idempotency.DoneWith([]byte("found"))); err != nil {
					t.Error(err)
				}
				replayed(t, g, key, "", "found")
			})
		}
	}
}

// retried is the outcome of a retry.
type retried struct {
	attempt int64 // 0 if it does not run
	result  string
	err     error
	effects int // the result in the end
	asked   int // how many times Reconcile was called
}

func (r retried) is(want retried) bool {
	same := errors.Is(r.err, want.err)
	r.err = want.err
	return same && r == want
}

// after is what a policy prescribes for a retry after a process was killed at a point.
func after(point, policy string, effects int) retried {
	switch {
	case point == beforeBegin:
		return retried{1, "again", nil, 1, 0}
	case point == duringComplete, point == afterComplete:
		return retried{0, "result", nil, 1, 0}
	case policy == "retry":
		return retried{2, "again", nil, effects + 1, 0}
	case policy == "reject":
		return retried{0, "", idempotency.ErrInDoubt, effects, 0}
	case effects == 0:
		return retried{2, "again", nil, 1, 1}
	}
	return retried{0, "found", nil, 1, 1}
}

// retry is another process, after the lease of the first has ended.
func retry(t *testing.T, g *idempotency.Guard, key, file string) (r retried) {
	t.Helper()
	result, err := g.Do(t.Context(), key, func(ctx context.Context) ([]byte, error) {
		c, _ := idempotency.FromContext(ctx)
		r.attempt = c.Attempt()
		effect(file)
		return []byte("again"), nil
	})
	r.result, r.err = string(result), err
	return r
}
