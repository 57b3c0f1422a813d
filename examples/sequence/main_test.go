package main

import (
	"context"
	"errors"
	"io"
	"strings"
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

func TestAProcessEndsWithItsParent(t *testing.T) {
	t.Parallel()
	in, parent := io.Pipe()
	ctx := whileOpen(t.Context(), in)
	if _, err := io.Copy(parent, strings.NewReader("said")); err != nil || ctx.Err() != nil {
		t.Fatalf("while its parent lives: got %v, and the context's error %v, want none", err, ctx.Err())
	}
	parent.Close()
	err := draw(ctx, "none", func(ctx context.Context) (Number, error) {
		<-ctx.Done()
		return Number{}, errors.New("down")
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
