package usecases

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/gatefake"
)

// Two processes have an outbox, and the first sends: until it is shut down, though once
// it fails.
func TestSendOutbox(t *testing.T) {
	t.Parallel()
	rdb := gatefake.Redis(t)
	type sent struct {
		by    int
		fence int64
	}
	all := make(chan sent)
	stand := func(ctx context.Context, by int) (returned chan error) {
		roles, err := lock.New(rdb, "roles", nil)
		if err != nil {
			t.Fatal(err)
		}
		returned = make(chan error, 1)
		go func() {
			returned <- SendOutbox(ctx, roles, func(ctx context.Context, fence int64) error {
				select {
				case all <- sent{by, fence}:
					return errors.New("it fails")
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		}()
		return returned
	}
	ctx, shutDown := context.WithCancel(t.Context())
	first := stand(ctx, 1)
	one := <-all
	second := stand(t.Context(), 2)
	if again := <-all; one.by != 1 || again != one {
		t.Errorf("got sent by %+v and %+v, want both times by the first process, with one fence", one, again)
	}
	shutDown()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first process: got %v, want Canceled", err)
	}
	select {
	case two := <-all:
		if two.by != 2 || two.fence <= one.fence {
			t.Errorf("then: got sent by %+v, want by the second process, with a fence above %d", two, one.fence)
		}
	case err := <-second:
		t.Errorf("the second process: got %v, want it to lead", err)
	case <-time.After(time.Minute):
		t.Error("the second process: got nothing sent within a minute, want something")
	}
}
