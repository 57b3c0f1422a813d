package call

import (
	"context"
	"sync"
	"time"
)

// budget is the context of one call: the caller's context with a deadline.
//
// go-redis reads the deadline for its I/O and polls Done once before every command. It
// asks for Done again only if a command waits for a connection. So the first Done returns
// the caller's. The timer of a real deadline costs more than the rest of a call, so it is
// made only for the second Done.
type budget struct {
	context.Context
	deadline time.Time
	short    time.Duration // how much earlier than the budget the deadline is; then it is the caller's own

	mu     sync.Mutex
	polled bool
	timed  context.Context
	cancel context.CancelFunc
}

func (b *budget) begin(ctx context.Context, from time.Time, d time.Duration) {
	if from.IsZero() {
		from = time.Now()
	}
	b.Context, b.deadline, b.short = ctx, from.Add(d), 0
	if earlier, ok := ctx.Deadline(); ok && earlier.Before(b.deadline) {
		b.short = b.deadline.Sub(earlier)
		b.deadline = earlier
	}
}

// due returns when the budget ends, even if the deadline is earlier.
func (b *budget) due() time.Time { return b.deadline.Add(b.short) }

// isShort reports whether the caller's own deadline ends the call before its budget does.
func (b *budget) isShort() bool { return b.short > 0 }

func (b *budget) Deadline() (time.Time, bool) { return b.deadline, true }

func (b *budget) Done() <-chan struct{} {
	b.mu.Lock()
	polled := b.polled
	b.polled = true
	b.mu.Unlock()
	if !polled {
		return b.Context.Done()
	}
	return b.real().Done()
}

func (b *budget) Err() error {
	if err := b.Context.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	timed := b.timed
	b.mu.Unlock()
	if timed != nil {
		return timed.Err()
	}
	if time.Now().Before(b.deadline) {
		return nil
	}
	return context.DeadlineExceeded
}

// pollAnew makes the next Done return the caller's again.
func (b *budget) pollAnew() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.polled = false
}

// real returns the context that the standard library would have made.
func (b *budget) real() context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timed == nil {
		b.timed, b.cancel = context.WithDeadline(b.Context, b.deadline)
	}
	return b.timed
}

func (b *budget) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cancel != nil {
		b.cancel()
	}
}
