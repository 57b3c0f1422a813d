package lock

import (
	"context"
	"errors"
	"time"

	"github.com/neap-go/neap/core/script"
)

// warmBudget is for a Warm whose context has no deadline.
const warmBudget = 10 * time.Second

// Warm connects to Redis and has it load the scripts, on every node of a
// cluster, and asks once about a key that nobody has: the first locks then are
// granted within the budget. Call it at start, with a deadline of some seconds;
// it takes up to 10 s where ctx has none.
//
// Its error is that of Redis, so that a start can tell a wrong password or a
// missing permission. A user who may run scripts but not load them is no error,
// as long as they are loaded.
func (l *Locker) Warm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, warmBudget)
	defer cancel()
	patient, err := script.NewRunner(l.rdb, &script.Options{Budget: warmBudget})
	if err != nil {
		return err
	}
	err = patient.Load(ctx, acquireScript, extendScript, releaseScript, forceScript, inspectScript, startScript, endScript)
	if err != nil && !errors.Is(err, script.ErrConfiguration) {
		return err
	}
	_, err = patient.Run(ctx, inspectScript, []string{l.space.Key("warm", "")})
	return err
}
