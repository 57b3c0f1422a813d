package behind

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

var thousand = limit.FixedWindow{Name: "w", Limit: 1000, Window: time.Hour}

// operators are the calls that look at what Redis has, or change it by hand. A new one
// joins here.
var operators = map[string]func(ctx context.Context, here *side, key string) error{
	"peek":  func(ctx context.Context, here *side, key string) error { return degraded(here.limiter.Peek(ctx, key)) },
	"reset": func(ctx context.Context, here *side, key string) error { return second(here.limiter.Reset(ctx, key)) },
	"ban": func(ctx context.Context, here *side, key string) error {
		return here.banning.Ban(ctx, key, time.Minute)
	},
	"unban":  func(ctx context.Context, here *side, key string) error { return second(here.banning.Unban(ctx, key)) },
	"banned": func(ctx context.Context, here *side, key string) error { return second(here.banning.Banned(ctx, key)) },
	"hold": func(ctx context.Context, here *side, key string) error {
		return here.banning.Hold(ctx, key, time.Minute)
	},
	"override": func(ctx context.Context, here *side, key string) error {
		return here.banning.Override(ctx, key, time.Minute, thousand)
	},
	"end of an override": func(ctx context.Context, here *side, key string) error {
		return second(here.banning.EndOverride(ctx, key))
	},
	"look at an override": func(ctx context.Context, here *side, key string) error {
		_, _, err := here.banning.Overridden(ctx, key)
		return err
	},
	"count of slots":       func(ctx context.Context, here *side, key string) error { return second(here.slots.InFlight(ctx, key)) },
	"inspection of a lock": func(ctx context.Context, here *side, key string) error { return second(here.locker.Inspect(ctx, key)) },
	"forced release": func(ctx context.Context, here *side, key string) error {
		return second(here.locker.ForceRelease(ctx, key))
	},
	"inspection of a guard": func(ctx context.Context, here *side, key string) error { return second(here.guard.Inspect(ctx, key)) },
	"resolution": func(ctx context.Context, here *side, key string) error {
		return here.guard.Resolve(ctx, key, idempotency.NothingDone())
	},
	"forgotten record": func(ctx context.Context, here *side, key string) error { return second(here.guard.Forget(ctx, key)) },
	"opening of an item": func(ctx context.Context, here *side, key string) error {
		return second(here.shop.Open(ctx, key, 1, time.Now().Add(time.Hour)))
	},
	"restocking":       func(ctx context.Context, here *side, key string) error { return here.shop.Restock(ctx, key, "1", 1) },
	"level of an item": func(ctx context.Context, here *side, key string) error { return second(here.shop.Left(ctx, key)) },
	"buyers": func(ctx context.Context, here *side, key string) error {
		for _, err := range here.shop.Buyers(ctx, key) {
			return err
		}
		return nil
	},
	"forgotten item": func(ctx context.Context, here *side, key string) error { return second(here.shop.Forget(ctx, key)) },
}

// TestAReplyToAnOperatorThatIsNotKnown: it may have changed what it was to change.
func TestAReplyToAnOperatorThatIsNotKnown(t *testing.T) {
	t.Parallel()
	for name, ask := range operators {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProxied(t)
			here := p.side(t)
			for _, reply := range []string{"an error of a proxy", "a status", "a map"} {
				p.Answer(replies[reply], redistest.After, ever, "evalsha", "eval")
				if err := ask(t.Context(), here, "k"); !errors.Is(err, script.ErrMaybeExecuted) {
					t.Errorf("%s: got %v, want ErrMaybeExecuted", reply, err)
				}
				p.Answer("", redistest.After, 0)
				redistest.Await(t, time.Minute, "an answer", func() bool { return degraded(here.limiter.Peek(t.Context(), "k")) == nil })
			}
		})
	}
}
