package idempotency_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// caller is a child process. It prints "ready", and at the next line asks many times at
// once. It prints "in flight", "result <it>", "began" or "error <it>" for each. The one
// that began prints "ran <result>" when it is told to end.
func caller(words []string) {
	addr, prefix, how := words[0], words[1], words[2]
	callers, err := strconv.Atoi(words[3])
	if err != nil {
		panic(err)
	}
	g, err := idempotency.New(storetest.Child(addr, prefix), "test",
		idempotency.Retry{}, &idempotency.Options{Budget: 5 * time.Second, Wait: time.Minute})
	if err != nil {
		panic(err)
	}
	if err := g.Warm(context.Background()); err != nil {
		panic(err)
	}
	ask := g.Begin
	if how == "await" {
		ask = g.Await
	}
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	in.Scan()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			run, err := ask(context.Background(), "key", "print")
			switch {
			case run.Claim != nil:
				fmt.Println("began")
				in.Scan()
				own := rand.Text()
				if err := run.Claim.Conclude(context.Background(), idempotency.DoneWith([]byte(own))); err != nil {
					fmt.Println("error", err)
				}
				fmt.Println("ran", own)
			case errors.Is(err, idempotency.ErrInFlight):
				fmt.Println("inflight")
			case err != nil:
				fmt.Println("error", err)
			default:
				fmt.Println("result", string(run.Result))
			}
		})
	}
	all.Wait()
	in.Scan()
}

// Test200Duplicates has three processes ask 200 times at once for the same work. The work
// runs once, and ends when all other callers have an answer or wait.
func Test200Duplicates(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"begin", "await"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			srv := redistest.NewStandalone(t)
			admin, prefix := srv.Admin(t), srv.Prefix(t)
			type line struct {
				by    *redistest.Child
				words []string
			}
			lines := make(chan line, 200)
			var children []*redistest.Child
			for _, n := range []string{"67", "67", "66"} {
				p := redistest.StartChild(t, "caller", srv.Addr(), prefix, how, n)
				if text := p.Line(t); text != "ready" {
					t.Fatalf("the child: got %q, want ready", text)
				}
				children = append(children, p)
			}
			redistest.ResetStats(t, admin)
			for _, p := range children {
				p.Tell(t, "go")
				go func() {
					for {
						text, err := p.Next()
						if err != nil {
							return
						}
						select {
						case lines <- line{p, strings.Fields(text)}:
						case <-t.Context().Done():
							return
						}
					}
				}()
			}
			var runner *redistest.Child
			said := map[string]int{}
			results := map[string]int{}
			for told := 0; told < 200; {
				if how == "await" && runner != nil {
					redistest.Await(t, soon, "all to ask", func() bool { return redistest.CommandStats(t, admin)["evalsha"].Calls >= 200 })
				}
				if runner != nil && (how == "await" || told == 199) {
					runner.Tell(t, "end")
					runner = nil
				}
				l := <-lines
				said[l.words[0]]++
				switch l.words[0] {
				case "began":
					runner = l.by
					continue
				case "ran", "result":
					results[l.words[1]]++
				case "error":
					t.Errorf("a caller: got %q, want no error", l.words)
				}
				told++
			}
			want := map[string]int{"began": 1, "ran": 1, "inflight": 199}
			if how == "await" {
				want = map[string]int{"began": 1, "ran": 1, "result": 199}
			}
			if fmt.Sprint(said) != fmt.Sprint(want) || len(results) != 1 {
				t.Errorf("got the answers %v with the results %v, want %v with one result", said, results, want)
			}
			if how == "await" {
				t.Logf("%d questions", redistest.CommandStats(t, admin)["evalsha"].Calls)
			}
		})
	}
}
