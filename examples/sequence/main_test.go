package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestAProcessGivesUp has it never get a number, or get none any more.
func TestAProcessGivesUp(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	for _, up := range []int{0, 5} {
		synctest.Test(t, func(t *testing.T) {
			began, asked := time.Now(), 0
			err := draw(t.Context(), "none", func(context.Context) (Number, error) {
				if asked++; asked <= up {
					time.Sleep(patience / 2)
					return Number{}, nil
				}
				return Number{}, down
			})
			if tried := time.Since(began) - time.Duration(up)*patience/2; !errors.Is(err, down) || tried < patience || tried > 2*patience {
				t.Errorf("got %v after %v, want %v after %v to %v", err, tried, down, patience, 2*patience)
			}
		})
	}
}

func TestAProcessEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	end()
	err := draw(ctx, "none", func(context.Context) (Number, error) { return Number{}, errors.New("down") })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
