package store_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/store"
)

// TestObserversThatDoNotReturn take no grant with them: a panic changes nothing, and what is
// granted to a goroutine that an observer ends is given back.
func TestObserversThatDoNotReturn(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(){"a panic": func() { panic(errHook) }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				st, all := inBubble(t, store.Options{})
				remove := st.Observe(func(context.Context, store.Event) { end() })
				granted := map[*grants]error{}
				for _, g := range all {
					ended := errors.New("the goroutine ended")
					done := make(chan error, 1)
					go func() {
						err := ended
						defer func() { done <- err }()
						err = g.take(t.Context())
					}()
					granted[g] = <-done
					if exits := name == "Goexit"; exits != (granted[g] == ended) || granted[g] != nil && !exits {
						t.Errorf("%s: got %v, want no grant only after Goexit", g.name, granted[g])
					}
				}
				remove()
				time.Sleep(4 * panicLease)
				for _, g := range all {
					var err error
					if granted[g] != nil {
						err = g.take(t.Context())
					}
					for i := 0; i < 100 && g.name == "estimate" && errors.Is(err, errTaken); i++ { // until it is known that nothing refers to the decision
						runtime.GC()
						time.Sleep(2 * panicLease)
						err = g.take(t.Context())
					}
					if err = errors.Join(err, g.held(t.Context()), g.leave(t.Context())); err != nil {
						t.Errorf("%s, four leases later: got %v, want it to be had", g.name, err)
					}
				}
				time.Sleep(time.Hour)
			})
		})
	}
}

// TestObserversOfAnErrorThatDoNotReturn: what a lost answer may have granted is taken back
// also if an observer ends the goroutine.
func TestObserversOfAnErrorThatDoNotReturn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hook := &badHook{before: doNothing, after: doPanic} // the answer is lost
		st, all := inBubble(t, store.Options{Queue: store.Direct}, hook)
		for _, g := range all {
			if g.name == "estimate" { // nobody has the decision, so it lapses
				continue
			}
			if err := errors.Join(g.take(t.Context()), g.leave(t.Context())); err != nil { // the server has the script then
				t.Fatal(err)
			}
			remove := st.Observe(func(_ context.Context, e store.Event) {
				if e.Primitive != store.Server {
					runtime.Goexit()
				}
			})
			hook.armed.Store(true)
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = g.take(t.Context())
				t.Errorf("%s: the call returned, want its goroutine ended by the observer", g.name)
			}()
			<-done
			hook.armed.Store(false)
			remove()
			time.Sleep(panicLease / 2)
			if err := g.take(t.Context()); err != nil {
				t.Errorf("%s, half a lease after its answer was lost: got %v, want it granted", g.name, err)
			} else if err := g.leave(t.Context()); err != nil {
				t.Errorf("%s: got %v, want it to end", g.name, err)
			}
		}
		time.Sleep(time.Hour)
	})
}

// TestObserversOfAServerThatDoNotReturn: the first answer after an outage is told on the
// goroutine of the call that got it. It keeps what it was granted. So does one whose
// handler of the log does not return.
func TestObserversOfAServerThatDoNotReturn(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(){"a panic": func() { panic(errHook) }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var told atomic.Int64
				leave := func() {
					told.Add(1)
					end()
				}
				hook := &badHook{before: doNothing, after: doNothing, fails: io.EOF}
				st, all := inBubble(t, store.Options{Queue: store.Direct, Logger: slog.New(badLog{slog.Default().Handler(), leave})}, hook)
				st.Observe(func(_ context.Context, e store.Event) {
					if e.Primitive == store.Server {
						leave()
					}
				})
				for _, g := range all {
					for before := told.Load(); told.Load() < before+2; time.Sleep(100 * time.Millisecond) { // a line and an event
						hook.armed.Store(true)
						if g.take(t.Context()) == nil {
							t.Fatalf("%s: got a grant in an outage, want an error", g.name)
						}
					}
					hook.armed.Store(false)
					time.Sleep(time.Minute)
					done, before := make(chan error, 1), told.Load()
					go func() {
						err := errors.New("the goroutine ended")
						defer func() { done <- err }()
						err = g.take(t.Context())
					}()
					if err := errors.Join(<-done, g.held(t.Context()), g.leave(t.Context())); err != nil || told.Load() != before+2 {
						t.Errorf("%s, by the call that ends an outage: got %v, told %d times, want it held, and told twice", g.name, err, told.Load()-before)
					}
				}
				time.Sleep(time.Hour)
			})
		})
	}
}

// badLog is a handler of a log that does not return.
type badLog struct {
	slog.Handler
	leave func()
}

func (badLog) Enabled(context.Context, slog.Level) bool { return true }

func (h badLog) Handle(context.Context, slog.Record) error {
	h.leave()
	return nil
}
