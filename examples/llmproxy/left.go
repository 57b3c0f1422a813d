package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
)

// left prints what users or models have left, and returns what differs from what they used of so many tokens. Since they
// began, a minute's tokens refill in a minute.
func left(ctx context.Context, out io.Writer, l *limit.Limiter, key gate.Key, kind string, used map[string]int64, most int64, began time.Time) error {
	var faults []error
	fmt.Fprintf(out, "\nleft of %d tokens by %s:", most, kind)
	for _, name := range slices.Sorted(maps.Keys(used)) {
		of := gate.Values{JSON: map[string]string{"model": name}, Stored: map[any]any{callKey{}: name}}
		subject, err := gate.Subject(key, of)
		if err != nil {
			return err
		}
		d, err := l.Peek(ctx, subject)
		if err != nil {
			return err
		}
		var tokens limit.State
		for s := range d.States() {
			if strings.HasSuffix(s.Policy, "-tokens") {
				tokens = s
			}
		}
		fmt.Fprintf(out, " %s %d", name, tokens.Remaining)
		if tokens.RetryAfter > 0 {
			fmt.Fprintf(out, " (none for %v)", tokens.RetryAfter.Round(time.Second))
		}
		refilled := int64(time.Since(began)*time.Duration(most)/time.Minute) + 1
		least := max(most-used[name], 0)
		if tokens.Remaining < least || tokens.Remaining > max(most-used[name]+refilled, 0) {
			faults = append(faults, fmt.Errorf("%s has %d tokens left, want %d and no more than the %d that refilled", name, tokens.Remaining, least, refilled))
		}
	}
	fmt.Fprintln(out)
	return errors.Join(faults...)
}
