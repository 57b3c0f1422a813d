package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// lineOf returns the processes in the line of a record.
func lineOf(t *testing.T, admin redis.UniversalClient, record string) (processes []string) {
	t.Helper()
	words := strings.Fields(admin.HGet(t.Context(), record, "wake").Val())
	for i := 1; i+1 < len(words); i += 2 {
		processes = append(processes, words[i])
	}
	return processes
}

func lineHas(t *testing.T, admin redis.UniversalClient, record string, n int) {
	t.Helper()
	redistest.Await(t, soon, fmt.Sprintf("%d processes in line", n), func() bool { return len(lineOf(t, admin, record)) == n })
}

// TestALockPassesInTurn from process to process, in the order in which they came. Each
// release wakes one of them.
func TestALockPassesInTurn(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		sent := new(redistest.CountingHook)
		rdb.AddHook(sent)
		holder := locker(t, rdb, prefix, unasking())
		release(t, try(t, holder)) // loads the scripts
		held := try(t, holder)
		got := make(chan int)
		var all sync.WaitGroup
		const processes = 5
		for i := range processes {
			l := locker(t, rdb, prefix, unasking())
			all.Go(func() {
				if err := l.Do(t.Context(), "key", func(context.Context) error { got <- i; return nil }); err != nil {
					t.Errorf("Do: got %v, want no error", err)
				}
			})
			lineHas(t, admin, recordOf(prefix, "key"), i+1)
		}
		before := sent.Scripts.Load()
		release(t, held)
		for want := range processes {
			if i := <-got; i != want {
				t.Errorf("turn %d: got process %d", want, i)
			}
		}
		all.Wait()
		if n := sent.Scripts.Load() - before; n != 2*processes+1 {
			t.Errorf("%d processes in turn: got %d calls, want an acquire and a release of each, and the first release", processes, n)
		}
		freeSoon(t, locker(t, rdb, prefix, nil), "key")
	}, redistest.OnStandalone, redistest.OnCluster)
}

// TestAFreeLockWaitsForTheFirstInLine and for nobody else, and not for long.
func TestAFreeLockWaitsForTheFirstInLine(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		l, record := locker(t, rdb, prefix, nil), recordOf(prefix, "key")
		put := func(since time.Duration) {
			at := admin.Time(t.Context()).Val().Add(since).UnixMilli()
			admin.HSet(t.Context(), record, "fence", 1, "wake", fmt.Sprintf("PUBLISH first %d second 9000000000000000", at))
			admin.PExpire(t.Context(), record, time.Hour)
		}
		put(time.Minute) // the clock was set back
		release(t, try(t, l))
		put(-time.Minute)
		release(t, try(t, l))
		promised := false
		redistest.Await(t, soon, "a lock that waits for the first in line", func() bool { // unless this machine takes 100 ms
			put(0)
			held, err := l.Try(t.Context(), "key")
			if promised = errors.Is(err, lock.ErrHeld); !promised {
				release(t, held)
			}
			return promised
		})
		freeSoon(t, l, "key")
	}, redistest.OnStandalone, redistest.OnCluster)
}

// TestTheDeadInLineCostOneWait: after the first of them has not come, nobody waits for the
// others.
func TestTheDeadInLineCostOneWait(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		record := recordOf(prefix, "key")
		l, holder := locker(t, rdb, prefix, calm(lock.Options{})), locker(t, rdb, prefix, calm(lock.Options{}))
		held := try(t, holder)
		line := "PUBLISH"
		if _, cluster := rdb.(*redis.ClusterClient); cluster {
			line = "SPUBLISH"
		}
		for i := range 20 {
			line += fmt.Sprintf(" dead%d 9000000000000000", i)
		}
		admin.HSet(t.Context(), record, "wake", line)
		got := make(chan *lock.Lock, 1)
		go func() {
			held, err := l.Acquire(t.Context(), "key")
			if err != nil {
				t.Errorf("Acquire: got %v, want the lock", err)
			}
			got <- held
		}()
		lineHas(t, admin, record, 21)
		release(t, held)
		next := <-got
		if left := lineOf(t, admin, record); len(left) != 0 {
			t.Errorf("after the first of 20 dead has not come: got the line %q, want none", left)
		}
		if next != nil {
			release(t, next)
		}
	}, redistest.OnStandalone, redistest.OnCluster)
}

// leaves counts the calls by which processes leave a line. They are sent when they may be.
type leaves struct {
	sent atomic.Int64
	may  chan struct{} // nil: at once
}

func (h *leaves) see(cmd redis.Cmder) {
	if args := redistest.Write(cmd); len(args) > 1 && scriptNames[args[1]] == "leave" {
		h.sent.Add(1)
		if h.may != nil {
			<-h.may
		}
	}
}

// TestAProcessThatGivesUpLeavesTheLine once, when none of its callers waits any more:
// whether they give up one after the other or all at the same time.
func TestAProcessThatGivesUpLeavesTheLine(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		record := recordOf(prefix, "key")
		held := try(t, locker(t, rdb, prefix, unasking()))
		left := new(leaves)
		rdb.AddHook(redistest.BeforeHook(left.see))
		l := locker(t, rdb, prefix, unasking())
		if err := l.Warm(t.Context()); err != nil { // or a call may be made twice
			t.Fatal(err)
		}
		for name, together := range map[string]bool{"one after the other": false, "at the same time": true} {
			left.sent.Store(0)
			all, leaveAll := context.WithCancel(t.Context())
			first, leave := context.WithCancel(all)
			for i, ctx := range []context.Context{first, all, all} {
				go func() { _, _ = l.Acquire(ctx, "key") }()
				inLine(t, l, i+1)
			}
			lineHas(t, admin, record, 1)
			if !together {
				leave()
				inLine(t, l, 2)
			}
			leaveAll()
			lineHas(t, admin, record, 0)
			inLine(t, l, 0)
			if n := left.sent.Load(); n != 1 {
				t.Errorf("%s: got %d calls to leave the line, want 1", name, n)
			}
			leave()
		}
		release(t, held)
	}, redistest.OnStandalone)
}

// TestAProcessComesBackIntoTheLine: a caller that comes while its process leaves the line
// has its place taken, and asks for another.
func TestAProcessComesBackIntoTheLine(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		record := recordOf(prefix, "key")
		held := try(t, locker(t, rdb, prefix, unasking()))
		left := &leaves{may: make(chan struct{})}
		rdb.AddHook(redistest.BeforeHook(left.see))
		l := locker(t, rdb, prefix, unasking())
		if err := l.Warm(t.Context()); err != nil { // or a call may be made twice
			t.Fatal(err)
		}
		first, leave := context.WithCancel(t.Context())
		go func() { _, _ = l.Acquire(first, "key") }()
		lineHas(t, admin, record, 1)
		leave()
		redistest.Await(t, soon, "the process to leave", func() bool { return left.sent.Load() == 1 })
		got := make(chan error, 1)
		go func() { got <- l.Do(t.Context(), "key", nothing) }()
		inLine(t, l, 1)
		lineHas(t, admin, record, 1)
		before := admin.HGet(t.Context(), record, "wake").Val()
		close(left.may)
		redistest.Await(t, soon, "another place than the one that was taken away", func() bool {
			now := admin.HGet(t.Context(), record, "wake").Val()
			return now != "" && now != before
		})
		release(t, held)
		if err := <-got; err != nil {
			t.Errorf("Do: got %v, want no error", err)
		}
	}, redistest.OnStandalone)
}

// TestTheNextInLineIsTold if the first one leaves while the free lock waits for it.
func TestTheNextInLineIsTold(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		record := recordOf(prefix, "key")
		held := try(t, locker(t, rdb, prefix, unasking()))
		admin.HSet(t.Context(), record, "wake", "PUBLISH first 9000000000000000")
		got := make(chan error, 1)
		go func() { got <- locker(t, rdb, prefix, unasking()).Do(t.Context(), "key", nothing) }()
		lineHas(t, admin, record, 2)
		redistest.Await(t, soon, "the second to be subscribed", func() bool {
			second := lineOf(t, admin, record)[1]
			return hearers(t, admin.(*redis.Client), record+":"+second) == 1
		})
		release(t, held)
		run, err := script.NewRunner(rdb, &script.Options{Budget: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := run.Run(t.Context(), leaveScript, []string{record}, "first"); err != nil || n != int64(1) {
			t.Errorf("the first leaves: got %v, %v, want 1", n, err)
		}
		if err := <-got; err != nil {
			t.Errorf("Do: got %v, want no error", err)
		}
	}, redistest.OnStandalone)
}

// TestALineIsBounded: if too many processes wait, all of them are told.
func TestALineIsBounded(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		record := recordOf(prefix, "key")
		held := try(t, locker(t, rdb, prefix, unasking()))
		line := "PUBLISH"
		for i := range 64 {
			line += fmt.Sprintf(" other%d 9000000000000000", i)
		}
		admin.HSet(t.Context(), record, "wake", line)
		got := make(chan error, 1)
		l := locker(t, rdb, prefix, unasking())
		go func() { got <- l.Do(t.Context(), "key", nothing) }()
		lineHas(t, admin, record, 0)
		release(t, held)
		if err := <-got; err != nil {
			t.Errorf("Do: got %v, want no error", err)
		}
	}, redistest.OnStandalone, redistest.OnCluster)
}
