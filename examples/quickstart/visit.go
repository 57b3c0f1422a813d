package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// visit sends requests to one framework's server, shows the answers and keeps
// what is not as expected. What it expects holds at any pace at which the
// requests of a step take less time than the window that they are counted in.
type visit struct {
	*screen

	client    *client
	framework string
	shadowed  atomic.Int64 // what shadow policies would have denied
	faults    []error
}

// step sends requests to what belongs together. Its error is a request that
// got no answer.
type step func(*visit, context.Context) error

func allSteps() []step {
	return []step{
		(*visit).burst, (*visit).headers, (*visit).recovery,
		(*visit).otherRoutes,
		(*visit).slidingRoute, (*visit).bothRoute, (*visit).usersRoute,
		(*visit).keyRoute, (*visit).costRoute, (*visit).loginRoute, (*visit).shadowRoute,
		(*visit).inflightRoute, (*visit).exclusiveRoute, (*visit).ordersRoute, (*visit).freeRoute,
		(*visit).timeline,
	}
}

// run returns all that was not as expected, and ends early without an answer.
func (v *visit) run(ctx context.Context, steps []step) error {
	for _, s := range steps {
		if err := s(v, ctx); err != nil {
			return errors.Join(append(v.faults, fmt.Errorf("%s %w", v.framework, err))...)
		}
	}
	return errors.Join(v.faults...)
}

// checkf shows a finding, which says what was found and what was expected.
func (v *visit) checkf(ok bool, format string, args ...any) {
	finding := fmt.Sprintf(format, args...)
	v.linef("  %s %s", v.mark(ok, finding), finding)
}

// mark keeps a finding that is not as expected.
func (v *visit) mark(ok bool, finding string) string {
	if ok {
		return v.green("✓")
	}
	v.faults = append(v.faults, fmt.Errorf("%s %s", v.framework, strings.Join(strings.Fields(finding), " ")))
	return v.red("✗")
}

// checkRow sends as many requests as there are statuses expected, one after
// the other, with the values of the API key header.
func (v *visit) checkRow(ctx context.Context, what, target string, keys []string, want ...int) error {
	answers, err := v.client.row(ctx, len(want), target, keys...)
	if err != nil {
		return err
	}
	got := make([]int, len(answers))
	for i, a := range answers {
		got[i] = a.status
	}
	if slices.Equal(got, want) {
		v.checkf(true, "%-24s %s", what, v.statuses(answers))
	} else {
		v.checkf(false, "%-24s %s (expected %s)", what, join(got), join(want))
	}
	return nil
}

func join(statuses []int) string {
	words := make([]string, len(statuses))
	for i, status := range statuses {
		words[i] = strconv.Itoa(status)
	}
	return strings.Join(words, " ")
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
