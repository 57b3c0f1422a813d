package lock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// onceTTL is short because the test waits for it after each run that it kills.
const onceTTL = 300 * time.Millisecond

// onceChild prints "ready" and then reads ticks. It prints "began <fence>" in its run of
// a tick, and "over <ran> <how>" when Once has returned.
func onceChild(words []string) {
	addr, prefix, rerun := words[0], words[1], lock.Never
	if words[2] == lock.Again.String() {
		rerun = lock.Again
	}
	l, err := lock.New(storetest.Child(addr, prefix), "once", &lock.Options{Lease: onceTTL, RetryDelay: 50 * time.Millisecond})
	if err != nil {
		panic(err)
	}
	seed, err := strconv.ParseUint(words[3], 10, 64)
	if err != nil {
		panic(err)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		tick, _ := strconv.ParseInt(in.Text(), 10, 64)
		ran, err := l.Once(context.Background(), "job", time.UnixMilli(tick), rerun, func(ctx context.Context) error {
			held, _ := lock.FromContext(ctx)
			fmt.Println("began", held.Fence())
			for range 1 + rng.IntN(30) { // the work of the job
				if _, err := l.Inspect(ctx, "work"); err != nil {
					return err
				}
			}
			return nil
		})
		how := "well"
		if errors.Is(err, lock.ErrTakenByOther) {
			how = "taken"
		} else if err != nil {
			how = "unheard"
		}
		fmt.Println("over", ran, how)
	}
}

// said is a line that one process printed.
type said struct {
	by    *redistest.Child
	words []string
}

// crew is the processes of one job.
type crew struct {
	t     *testing.T
	child string
	words []string
	rng   *rand.Rand
	says  chan said
	ready []*redistest.Child
	coming,
	killed, stopped int
}

// hire starts a process and waits until it prints that it is ready.
func (c *crew) hire() {
	c.coming++
	p := redistest.StartChild(c.t, c.child, append(slices.Clip(c.words), strconv.FormatUint(c.rng.Uint64(), 10))...)
	go func() {
		for {
			text, err := p.Next()
			if err != nil {
				text = "gone"
			}
			select {
			case c.says <- said{p, strings.Fields(text)}:
			case <-c.t.Context().Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
}

// muster waits until all processes are ready.
func (c *crew) muster() {
	for len(c.ready)+c.coming < 5 {
		c.hire()
	}
	for c.coming > 0 {
		select {
		case s := <-c.says: // the line that it is ready
			c.coming--
			c.ready = append(c.ready, s.by)
		case <-time.After(time.Minute):
			c.t.Fatalf("got %d processes not ready after a minute, want all ready", c.coming)
		}
	}
}

// harm is what is done to a process while a tick runs.
type harm uint8

const (
	none       harm = iota
	killRunner      // after it has begun
	stopRunner      // after it has begun, for two leases
	killAny
)

// tally is what the processes printed about a tick.
type tally struct {
	fences                    []int64
	completed, taken, unheard int
}

// tick lets all processes run a tick. It returns when each of them has printed the
// outcome or is gone.
func (c *crew) tick(tick int64, h harm) (sum tally) {
	c.t.Helper()
	at := slices.Clone(c.ready)
	for _, p := range at {
		p.Tell(c.t, strconv.FormatInt(tick, 10))
	}
	var victim *redistest.Child
	var act <-chan time.Time
	var then func()
	dying := 0
	kill := func() {
		_ = victim.Process.Kill()
		c.killed, dying, act = c.killed+1, dying+1, nil
	}
	stop := func() {
		victim.Stop(c.t)
		c.stopped++
		act, then = time.After(2*onceTTL), func() {
			victim.Resume()
			act = nil
		}
	}
	aim := func(p *redistest.Child, do func()) {
		victim, act, then = p, time.After(time.Duration(c.rng.Int64N(int64(3*time.Millisecond)))), do
	}
	if h == killAny {
		aim(at[c.rng.IntN(len(at))], kill)
	}
	bound := time.After(time.Minute)
	for len(at) > 0 || act != nil || dying > 0 {
		select {
		case <-act:
			then()
		case <-bound:
			c.t.Fatalf("after a minute: got %d processes still at tick %d, want 0: %+v", len(at), tick, sum)
		case s := <-c.says:
			switch s.words[0] {
			case "began":
				fence, err := strconv.ParseInt(s.words[1], 10, 64)
				if err != nil {
					c.t.Fatalf("a process: got the words %q, want \"began\" and a fence", s.words)
				}
				sum.fences = append(sum.fences, fence)
				if victim == nil && h == killRunner {
					aim(s.by, kill)
				} else if victim == nil && h == stopRunner {
					aim(s.by, stop)
				}
			case "over":
				switch how := s.words[2]; {
				case how == "taken":
					sum.taken++
				case how == "unheard":
					sum.unheard++
				case s.words[1] == "true":
					sum.completed++
				}
				at = slices.DeleteFunc(at, func(p *redistest.Child) bool { return p == s.by })
			case "gone":
				if dying--; dying < 0 {
					c.t.Fatal("got a process that ended by itself, want only killed processes to end")
				}
				gone := func(p *redistest.Child) bool { return p == s.by }
				at, c.ready = slices.DeleteFunc(at, gone), slices.DeleteFunc(c.ready, gone)
			}
		}
	}
	return sum
}

// TestOnceInManyProcesses lets five processes run ticks. At random moments of a run, it
// kills its process, or stops it for longer than a lease.
func TestOnceInManyProcesses(t *testing.T) {
	t.Parallel()
	for _, rerun := range bothWays {
		t.Run(rerun.String(), func(t *testing.T) {
			t.Parallel()
			srv := redistest.Standalone(t)
			admin, prefix := srv.Admin(t), srv.Prefix(t)
			c := &crew{t: t, child: "once", words: []string{srv.Addr(), prefix, rerun.String()}, rng: redistest.Rand(t), says: make(chan said)}
			first, ticks := aTick(), redistest.Ops(1000)
			var all tally
			for i := range ticks {
				h := none
				switch {
				case i%20 == 5:
					h = killRunner
				case i%50 == 7:
					h = stopRunner
				case i%50 == 29:
					h = killAny
				}
				if h != none || i == 0 {
					c.muster()
				}
				at := first.Add(time.Duration(i) * time.Millisecond).UnixMilli()
				sum := c.tick(at, h)
				switch {
				case rerun == lock.Never && len(sum.fences) > 1:
					t.Errorf("tick %d: got %d runs, want 1 at most", i, len(sum.fences))
				case len(slices.Compact(slices.Sorted(slices.Values(sum.fences)))) != len(sum.fences):
					t.Errorf("tick %d: got the fences %v, want no two alike", i, sum.fences)
				case sum.completed > 1:
					t.Errorf("tick %d: got %d runs that completed, want 1 at most", i, sum.completed)
				case sum.completed+sum.unheard == 0 && h != killRunner && h != killAny:
					t.Errorf("tick %d: got %+v, want one that completed, or may have", i, sum)
				}
				if rerun == lock.Again {
					key := fmt.Sprintf("%s:lock:once:{job}:%d", prefix, at)
					redistest.Await(t, 10*time.Second, "the tick to be noted", func() bool {
						fields, err := admin.HKeys(t.Context(), key).Result()
						if err != nil {
							t.Fatal(err)
						}
						return slices.Equal(fields, []string{"fence"})
					})
				}
				all.fences = append(all.fences, sum.fences...)
				all.completed, all.taken, all.unheard = all.completed+sum.completed, all.taken+sum.taken, all.unheard+sum.unheard
			}
			t.Logf("%d ticks: %d runs began, %d completed, %d were taken over, %d unheard; %d processes were killed, %d stopped",
				ticks, len(all.fences), all.completed, all.taken, all.unheard, c.killed, c.stopped)
		})
	}
}
