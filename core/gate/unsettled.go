package gate

import (
	"context"
	"errors"
	"sync"

	"github.com/neap-go/neap/core/limit"
)

// unsettled counts, for each subject, the requests that may still give permits back. The
// zero value counts none.
type unsettled struct {
	mu sync.Mutex
	of map[string]int
}

// first counts a request if it is the only one of its subject.
func (u *unsettled) first(subject string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of[subject] > 0 {
		return false
	}
	u.add(subject, 1)
	return true
}

func (u *unsettled) begin(subject string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.add(subject, 1)
}

func (u *unsettled) end(subject string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.add(subject, -1); u.of[subject] == 0 {
		delete(u.of, subject)
	}
}

func (u *unsettled) add(subject string, n int) {
	if u.of == nil {
		u.of = map[string]int{}
	}
	u.of[subject] += n
}

func (g *rateLimit) waitsUnsettled() bool { return g.opts.Wait > 0 && g.opts.Settle != nil }

// waitUnsettled waits for the whole Wait while other requests of the subject run in this
// process: when they settle, there may be room sooner than the limit says.
func (g *rateLimit) waitUnsettled(r Request, ask limit.Ask) (d limit.Decision, err error) {
	if g.unsettled.first(ask.Subject) {
		defer func() {
			if !d.Allowed {
				g.unsettled.end(ask.Subject)
			}
		}()
		return ask.Limiter.WaitFor(r.Context(), ask.Subject, ask.Cost, g.opts.Wait)
	}
	ctx, cancel := context.WithTimeout(r.Context(), g.opts.Wait)
	defer cancel()
	d, err = ask.Limiter.WaitN(ctx, ask.Subject, ask.Cost)
	late := errors.Is(err, context.DeadlineExceeded) && r.Context().Err() == nil // ctx may end a moment later
	if late || errors.Is(err, limit.ErrQueue) {
		d, err = ask.Limiter.WaitFor(r.Context(), ask.Subject, ask.Cost, 0)
	}
	if d.Allowed {
		g.unsettled.begin(ask.Subject)
	}
	return d, err
}
