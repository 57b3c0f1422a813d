package lock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// leaderTTL is short because the test waits for it after each leader that it kills.
const leaderTTL = 6 * time.Second

// leaderChild prints "leads <fence>" when it leads, and "ends" when its function's
// context has ended. When it has read a line and Lead has returned, it prints "over".
func leaderChild(words []string) {
	l, err := lock.New(storetest.Child(words[0], words[1]), "test", &lock.Options{Lease: leaderTTL, Budget: 2 * time.Second})
	if err != nil {
		panic(err)
	}
	ctx, shutdown := context.WithCancel(context.Background())
	go func() {
		bufio.NewScanner(os.Stdin).Scan()
		shutdown()
	}()
	fmt.Println("ready")
	err = l.Lead(ctx, "key", func(ctx context.Context) error {
		held, _ := lock.FromContext(ctx)
		fmt.Println("leads", held.Fence())
		<-ctx.Done()
		fmt.Println("ends")
		return context.Cause(ctx)
	})
	fmt.Println("over", errors.Is(err, context.Canceled))
}

// TestLeadInManyProcesses stops, kills or shuts down one leader of three after the other.
// The next one leads within a second after a shutdown. After a kill or a SIGSTOP it leads
// when the lease is over.
func TestLeadInManyProcesses(t *testing.T) {
	t.Parallel()
	stood := redistest.Witness(t)
	srv := redistest.Standalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	c := &crew{
		t: t, child: "leader", words: []string{srv.Addr(), prefix}, rng: redistest.Rand(t), says: make(chan said),
	}
	for range 3 {
		c.hire()
	}
	fence, ends := int64(0), map[string]int{}
	// next waits until a process leads that is none of those, and for what the others
	// print, if anything.
	next := func(not ...*redistest.Child) *redistest.Child {
		for bound := time.After(time.Minute); ; {
			select {
			case s := <-c.says:
				ends[s.words[0]]++
				if s.words[0] != "leads" {
					continue
				}
				n, err := strconv.ParseInt(s.words[1], 10, 64)
				if err != nil || n <= fence {
					t.Fatalf("a leader: got the fence %d, %v, want one above %d", n, err, fence)
				}
				fence = n
				if slices.Contains(not, s.by) {
					t.Fatal("got a leader that was taken away, want another process")
				}
				return s.by
			case <-bound:
				t.Fatal("got no leader within a minute, want one")
			}
		}
	}
	leader := next()
	for i := range 3 * redistest.Ops(3) {
		began := time.Now()
		most := time.Second
		switch i % 3 {
		case 0:
			wantsWaking(t, admin, recordOf(prefix, "key"))
			began = time.Now()
			leader.Tell(t, "shut down")
			c.hire()
			leader = next(leader)
		case 1:
			most = leaderTTL + time.Second
			_ = leader.Process.Kill()
			c.hire()
			leader = next(leader)
		case 2:
			most = leaderTTL + time.Second
			stopped := leader
			stopped.Stop(t)
			leader = next(stopped)
			stopped.Resume()
		}
		if took := time.Since(began); took > most+4*stood() {
			t.Errorf("round %d: the next one led after %v, want within %v", i, took, most)
		}
	}
	redistest.Await(t, 10*time.Second, "those that were shut down or stopped to say so", func() bool {
		select {
		case s := <-c.says:
			ends[s.words[0]]++
			if s.words[0] == "leads" {
				t.Fatal("got a second leader, want one")
			}
		default:
		}
		return ends["over"] >= redistest.Ops(3) && ends["ends"] >= 2*redistest.Ops(3)
	})
	t.Logf("got %v", ends)
}
