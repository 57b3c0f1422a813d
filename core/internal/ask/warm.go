package ask

import (
	"context"
	"errors"
	"time"

	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/script"
)

// warmBudget is for a Warm whose context has no deadline.
const warmBudget = 10 * time.Second

// Warm connects to Redis and has it load the scripts, and then runs one of them,
// which changes nothing, to learn whether it may. A user who may not load scripts
// is no error as long as they are there.
func Warm(ctx context.Context, rdb script.Client, question *script.Script, key string, scripts ...*script.Script) error {
	misuse.Context(ctx)
	ctx, cancel := context.WithTimeout(ctx, warmBudget)
	defer cancel()
	patient, err := script.NewRunner(rdb, &script.Options{Budget: warmBudget})
	if err != nil {
		return err
	}
	err = patient.Load(ctx, scripts...)
	if err != nil && !errors.Is(err, script.ErrConfiguration) {
		return err
	}
	_, err = patient.Run(ctx, question, []string{key})
	return err
}
