package lock_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// stander waits for the lock, prints "holds" when it has it, and gives it back when it has
// read a line.
func stander(words []string) {
	l, err := lock.New(storetest.Child(words[0], words[1]), "test", &lock.Options{Budget: 5 * time.Second, Wait: time.Hour})
	if err != nil {
		panic(err)
	}
	err = l.Do(context.Background(), "key", func(context.Context) error {
		fmt.Println("holds")
		bufio.NewScanner(os.Stdin).Scan()
		return nil
	})
	fmt.Println("over", err)
}

// TestProcessesThatDieInLine: whatever happens to the processes before it, the next one
// holds the lock some 100 ms after the release, and a RetryDelay at the most.
func TestProcessesThatDieInLine(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	for name, c := range map[string]struct {
		before int // how many stand before the next one
		happen func(p *redistest.Child, t testing.TB)
	}{
		"one is killed":  {1, func(p *redistest.Child, _ testing.TB) { p.Kill() }},
		"all are killed": {max(3, redistest.Ops(20)), func(p *redistest.Child, _ testing.TB) { p.Kill() }},
		"one is stopped": {1, (*redistest.Child).Stop},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stood := redistest.Witness(t)
			admin, prefix := srv.Admin(t), srv.Prefix(t)
			held := try(t, locker(t, srv.Client(t), prefix, nil))
			var all []*redistest.Child
			for range c.before + 1 {
				all = append(all, redistest.StartChild(t, "stander", srv.Addr(), prefix))
				redistest.Await(t, time.Minute, "the process to stand in line", func() bool {
					return len(lineOf(t, admin, recordOf(prefix, "key"))) == len(all)
				})
			}
			next := all[c.before]
			for _, p := range all[:c.before] {
				c.happen(p, t)
			}
			redistest.Time(t, admin) // Redis has run what they had sent
			began := time.Now()
			release(t, held)
			if said := next.Line(t); said != "holds" {
				t.Fatalf("got %q, want that it holds the lock", said)
			}
			if took, most := time.Since(began), lock.Waits+defaultRetryDelay+4*stood(); took > most {
				t.Errorf("the next one held the lock after %v, want within %v", took, most)
			}
			all[0].Resume()
			next.Tell(t, "give it back")
			if said := next.Line(t); said != "over <nil>" {
				t.Errorf("got %q, want no error", said)
			}
			if name == "one is stopped" { // it comes back into line
				if said := all[0].Line(t); said != "holds" {
					t.Errorf("the process that was stopped: got %q, want that it holds the lock", said)
				}
			}
		})
	}
}
