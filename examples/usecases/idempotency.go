package usecases

import (
	"context"
	"errors"
	"expvar"
	"log/slog"

	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/ginlimit"
)

// Orders books an order once, however often a client sends it.
func Orders(rdb script.Client) (gate.Gate, error) {
	guard, err := idempotency.New(rdb, "orders", idempotency.Retry{}, nil)
	if err != nil {
		return nil, err
	}
	return gate.Idempotent(guard, gate.ByValue("tenant", tenantKey{}), nil), nil
}

// InOrder mounts each middleware where it belongs.
func InOrder(r *gin.Engine, authenticate gin.HandlerFunc, limited, once gate.Gate, place gin.HandlerFunc) {
	r.Use(gin.Recovery(), authenticate)
	r.POST("/orders", ginlimit.Middleware(limited), ginlimit.Middleware(once), place)
}

// Imports are told apart by what their body says, and repetitions of one differ
// in when they were sent.
func Imports(guard *idempotency.Guard) gate.Gate {
	number := gate.ByJSON("/number", nil)
	return gate.Idempotent(guard, gate.ByValue("tenant", tenantKey{}), &gate.IdempotentOptions{
		Key:    number,
		Fields: []gate.Key{number, gate.ByJSON("/cents", nil)},
	})
}

// Booked runs the handler also while Redis is away. Its database has the key under a UNIQUE
// constraint, and answers a repetition with the order that it finds.
func Booked(guard *idempotency.Guard, principal gate.Key) gate.Gate {
	return gate.Idempotent(guard, principal, &gate.IdempotentOptions{
		Fail:    idempotency.RunUnguarded,
		OnError: func(r gate.Request, err error) { slog.WarnContext(r.Context(), "guard", "error", err) },
	})
}

var errNoCharge = errors.New("there is no such charge")

// Charges asks the payment provider what became of a charge whose process died.
func Charges(rdb script.Client, find func(ctx context.Context, key string) (receipt []byte, err error)) (*idempotency.Guard, error) {
	return idempotency.New(rdb, "charges", idempotency.Reconcile{
		Find: func(ctx context.Context, c *idempotency.Claim) (idempotency.Outcome, error) {
			receipt, err := find(ctx, c.Key())
			switch {
			case errors.Is(err, errNoCharge):
				return idempotency.NothingDone(), nil // the handler runs
			case err != nil:
				return idempotency.Unknown(), err // 409 for now; the next request asks again
			}
			return idempotency.DoneWith(created(receipt)), nil
		},
	}, nil)
}

// created is the response that the handler would have made.
func created(body []byte) []byte {
	return gate.StoredReply(gate.Reply{
		Status: 201,
		Header: []gate.Field{{Name: "Content-Type", Value: "application/json"}},
		Body:   body,
	})
}

// Settle says what became of a request in doubt. The order is nil where the
// database has none.
func Settle(ctx context.Context, guard *idempotency.Guard, find func(ctx context.Context, key string) (order []byte, err error)) error {
	key := gate.IdempotencyScope("tenant=17", "POST", "/orders", "8e03978e-40d5-43e8-bc93-6894a57f9324")
	record, err := guard.Inspect(ctx, key)
	if err != nil || record.State != idempotency.Doubtful {
		return err
	}
	slog.InfoContext(ctx, "in doubt", "attempt", record.Attempt, "fence", record.Fence, "expires", record.Expires)
	order, err := find(ctx, key)
	switch {
	case err != nil:
		return err
	case order == nil:
		return guard.Resolve(ctx, key, idempotency.NothingDone()) // the next one runs
	}
	return guard.Resolve(ctx, key, idempotency.DoneWith(created(order)))
}

// Sealed encrypts what is stored, by the newer key.
func Sealed(rdb script.Client, newer, older []byte) (*idempotency.Guard, error) {
	return idempotency.New(rdb, "orders", idempotency.Retry{}, &idempotency.Options{
		EncryptionKeys: []idempotency.EncryptionKey{
			{ID: "2026-11", Secret: newer}, // what is stored from now on
			{ID: "2026-05", Secret: older}, // what was stored before; leave it out a Retention later
		},
	})
}

// Consume has a message that a queue delivers several times paid once. Park puts it
// aside, for people to look at. If pay or Reconcile.Find asks another guard, the error may
// wrap that guard's: so the order of the cases matters.
func Consume(ctx context.Context, guard *idempotency.Guard, id string,
	pay func(ctx context.Context) ([]byte, error), park func(ctx context.Context, id string) error,
) error {
	ran := false
	receipt, err := guard.Do(ctx, id, func(ctx context.Context) ([]byte, error) {
		ran = true
		return pay(ctx)
	})
	switch {
	case ran && err != nil: // pay has failed
		return err // the queue delivers it again
	case errors.Is(err, idempotency.ErrInDoubt):
		return park(ctx, id) // for people to look at: a delivery alone does not settle it
	case errors.Is(err, idempotency.ErrNoResult), errors.Is(err, idempotency.ErrUnreadable):
		return nil // it was done, and its result is gone
	case err != nil:
		return err
	}
	slog.InfoContext(ctx, "paid", "bytes", len(receipt))
	return nil
}

// PublishGuard shows a guard's counts at /debug/vars.
func PublishGuard(guard *idempotency.Guard) {
	expvar.Publish("guard."+guard.Name(), expvar.Func(func() any { return guard.Stats() })) // panics for a known name
}
