package usecases

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
)

// Limits are policies that are replaced while requests come in.
type Limits struct {
	limiter *limit.Limiter
	now     atomic.Pointer[limit.Policies]
}

// Set replaces the policies. If the text is wrong, they stay as they were.
func (l *Limits) Set(text []byte) error {
	var next limit.Policies
	if err := next.UnmarshalText(text); err != nil {
		return err
	}
	if _, err := l.limiter.With(next...); err != nil { // such as two policies of one name, or none
		return err
	}
	l.now.Store(&next)
	return nil
}

// Gate limits each address by the policies of the last Set.
func (l *Limits) Gate() gate.Gate {
	return gate.RateLimit(l.limiter, gate.ByIP(nil), &gate.RateLimitOptions{
		Policies: func(gate.Request) ([]limit.Policy, error) { return *l.now.Load(), nil },
	})
}

// OpenLimits reads the first policies from a file.
func OpenLimits(rdb script.Client, file string) (*Limits, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var first limit.Policies
	if err := first.UnmarshalText(text); err != nil {
		return nil, err
	}
	limiter, err := limit.New(rdb, "api", first, nil)
	if err != nil {
		return nil, err
	}
	l := &Limits{limiter: limiter}
	l.now.Store(&first)
	return l, nil
}

// Watch reads the file again and again, until ctx ends.
func (l *Limits) Watch(ctx context.Context, file string, every time.Duration) {
	var known []byte
	for tick := time.Tick(every); ; {
		text, err := os.ReadFile(file)
		if err == nil && !bytes.Equal(text, known) {
			known = text
			err = l.Set(text)
		}
		if err != nil {
			slog.ErrorContext(ctx, "the limits stay as they were", "file", file, "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}
