package limit

import (
	"context"
	"errors"
	"time"

	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/script"
)

// warmBudget is for a Warm whose context has no deadline.
const warmBudget = 10 * time.Second

// Warm connects to Redis and has it load the limiter's scripts, on every node
// of a cluster, and makes one decision that takes nothing: the first requests
// are then decided within the budget. Call it at start, with a deadline of some
// seconds; it takes up to 10 s where ctx has none.
//
// Its error is that of Redis whatever the FailMode is, so that a start can
// tell a wrong password or a missing permission. A user who may run scripts
// but not load them is no error, as long as they are loaded.
func (l *Limiter) Warm(ctx context.Context) error {
	misuse.Context(ctx)
	if !l.made() {
		return errLimiter
	}
	if l.remote == nil {
		return ctx.Err()
	}
	return l.remote.warm(ctx, l)
}

func (r *remote) warm(ctx context.Context, l *Limiter) error {
	return r.door.warm(ctx, func(ctx context.Context, patient *door) error {
		asked := *r
		asked.door = patient
		return asked.take(ctx, l, newGrant("warm", 0, len(l.rules)))
	}, r.script, resetScript, refundScript)
}

// warm loads the scripts and then asks once, by way of a door with time.
func (d *door) warm(ctx context.Context, ask func(context.Context, *door) error, scripts ...*script.Script) error {
	ctx, cancel := context.WithTimeout(ctx, warmBudget)
	defer cancel()
	patient, err := newDoor(d.store, warmBudget)
	if err != nil {
		return err
	}
	err = patient.runner.Load(ctx, scripts...)
	if err != nil && !errors.Is(err, script.ErrConfiguration) {
		return err
	}
	if err := ask(ctx, patient); err != nil {
		return err
	}
	d.answered()
	return nil
}
