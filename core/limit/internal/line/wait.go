package line

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
)

// Wait waits until ask, which charges permits, has granted them. It returns the denial if the waiter
// cannot be served in time, and the error of ask or of ctx.
func (w *Waiter) Wait(ctx context.Context, ask func() (Answer, error)) (*Denial, error) {
	for {
		began := time.Now()
		f := w.of.forecast(w)
		if f.denial != nil {
			return f.denial, nil
		}
		if f.first {
			w.of.look(f.rest)
		}
		if w.most != nil {
			f.left += w.late // for the last call
		}
		if f.rest <= 0 && (f.first || f.left <= 0) {
			a, err := ask()
			w.of.answered(w, a, err, f.freed)
			if err != nil || a.Allowed {
				return nil, err
			}
			continue
		}
		if !f.first {
			f.rest = kind.Forever
		}
		if err := w.sleep(ctx, min(f.rest, max(f.left, leastRest))-time.Since(began)); err != nil {
			return nil, err
		}
	}
}

func (w *Waiter) hear() {
	select {
	case w.news <- struct{}{}:
	default: // it has not read the last signal yet
	}
}

// sleep waits until there is news, but no longer than d.
func (w *Waiter) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.news:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
