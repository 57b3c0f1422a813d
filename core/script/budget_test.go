package script

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestABudgetBeginsWhenTheCallerAsked, if the caller sets Asked.
func TestABudgetBeginsWhenTheCallerAsked(t *testing.T) {
	t.Parallel()
	asked := time.Now().Add(-time.Hour)
	var b budget
	b.begin(t.Context(), asked, time.Minute)
	if got, _ := b.Deadline(); !got.Equal(asked.Add(time.Minute)) {
		t.Errorf("with Asked: got the deadline %v, want a minute after %v", got, asked)
	}
	b.begin(t.Context(), time.Time{}, time.Minute)
	if got, _ := b.Deadline(); time.Until(got) <= 0 {
		t.Errorf("without Asked: got the deadline %v, want one in the future", got)
	}
}

// TestACallEndsAfterItsCallerAsked, even if it is sent later.
func TestACallEndsAfterItsCallerAsked(t *testing.T) {
	t.Parallel()
	r, err := NewRunner(neverAnswers{}, &Options{Budget: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	call := &Call{Asked: time.Now().Add(-10 * time.Second)}
	if err := r.Do(t.Context(), call, New("one.lua", "return 1"), []string{"{k}"}); !errors.Is(err, ErrNotExecuted) || !errors.Is(err, errUnsent) {
		t.Errorf("a call that was asked for long ago: got %v, want at once that it was not sent within the budget", err)
	}
}

// neverAnswers is a client that waits for the end of the context.
type neverAnswers struct{}

func (neverAnswers) Process(ctx context.Context, cmd redis.Cmder) error {
	<-ctx.Done()
	cmd.SetErr(ctx.Err())
	return ctx.Err()
}
