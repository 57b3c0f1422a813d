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

// Warm connects to Redis and loads the scripts there, and then asks a question that
// changes nothing, to learn whether it may. A user who may not load scripts is no
// error as long as they are there.
func Warm(
	ctx context.Context, rdb script.Client, question func(ctx context.Context, patient *script.Runner) error, scripts ...*script.Script,
) error {
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
	return question(ctx, patient)
}

// About is the question of a script that takes a key and no arguments.
func About(sc *script.Script, key string) func(ctx context.Context, patient *script.Runner) error {
	return func(ctx context.Context, patient *script.Runner) error {
		_, err := patient.Run(ctx, sc, []string{key})
		return err
	}
}
