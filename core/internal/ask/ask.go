// Package ask is how primitives ask their store: once, or again if the script may safely
// run twice. It counts the calls without an answer, so that what they may have granted can
// be taken back.
package ask

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/call"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/internal/undo"
	"github.com/neap-go/neap/core/script"
)

// again is the pause after the first lost reply. It doubles with each further one.
const again = time.Millisecond

// Asker makes calls, and repeats them if their reply is lost. A repetition begins in the
// first half of the budget and has a budget of its own. It is safe for concurrent use.
type Asker struct{ Runner }

// Ask runs a script that may safely run twice. If ctx has ended, it sends nothing. It
// repeats a call whose reply is lost, as long as half of the budget is left. asked is
// when it sent the last call. in counts the calls without an answer that may have run. The
// error is that of [Repeat].
func (a *Asker) Ask(
	ctx context.Context, sc *script.Script, key string, args ...any,
) (reply any, asked time.Time, in Doubt, err error) {
	misuse.Context(ctx)
	began := time.Now()
	asked = began
	if err := ctx.Err(); err != nil {
		return nil, asked, in, err
	}
	err = Repeat(ctx, began, a.Budget/2, func() error {
		asked = time.Now()
		c := new(call.Call)
		err := a.Do(ctx, c, sc, []string{key}, args...)
		switch {
		case err == nil:
			reply = c.Reply()
		case IsCallers(err) && c.Written(), errors.Is(err, script.ErrMaybeExecuted):
			in.Add(Doubt{asked, 1})
		}
		return err
	})
	return reply, asked, in, err
}

// Repeat calls attempt, which must be able to run twice. While the answer is lost, it
// calls it again after a pause, unless the pause would end later than most after began. It
// returns what [Worst] makes of the error of the last attempt.
func Repeat(ctx context.Context, began time.Time, most time.Duration, attempt func() error) error {
	lost := false
	for pause := again; ; pause *= 2 {
		err := attempt()
		if !errors.Is(err, script.ErrMaybeExecuted) {
			return Worst(lost, err)
		}
		lost = true
		if time.Since(began)+pause >= most || !Pause(ctx, pause) {
			return err
		}
	}
}

// Worst returns the error of a call that was made several times. err is how the last
// attempt ended, and ran says that an earlier one may have run. If the last one did not
// run, the class is that of the worst attempt: [script.ErrMaybeExecuted]. If the last one
// failed in the script, err is an answer.
func Worst(ran bool, err error) error {
	failure, is := err.(*script.Error) //nolint:errorlint // what wraps one has another meaning
	if !ran || !is || failure.Class != script.ErrNotExecuted && failure.Class != script.ErrConfiguration {
		return err
	}
	return &script.Error{
		Script: failure.Script, Class: script.ErrMaybeExecuted,
		Err: fmt.Errorf("an earlier attempt may have run, and the last did not: %w", failure.Err),
	}
}

// Doubt is how many calls went without an answer, and when the last was made.
type Doubt struct {
	Last  time.Time
	Calls int
}

// Add adds later calls.
func (d *Doubt) Add(more Doubt) {
	if more.Calls > 0 {
		d.Last, d.Calls = more.Last, d.Calls+more.Calls
	}
}

// Worst is the function [Worst] for a call with these attempts in doubt.
func (d *Doubt) Worst(err error) error { return Worst(d.Calls > 0, err) }

// TakeBack calls end in the background until what the calls in doubt granted is gone or
// has lapsed. answered says that the answer of the grant arrived. Such a grant is gone as
// soon as Redis does not have it. A grant without an answer may be made again by each
// call in doubt, even after end has ended it. start is Start or Keep of an undo.Undoer.
//
// If the script of end fails, the key holds something else, so the grant is not there. If
// end is refused by the configuration, Redis has not said. TakeBack returns what start
// returns.
func (d *Doubt) TakeBack(
	start func(asked time.Time, lease time.Duration, attempt func() undo.Result) bool,
	lease time.Duration, answered bool, end func() (found bool, err error),
) bool {
	ended, calls := 0, d.Calls
	return start(d.Last, lease, func() undo.Result {
		found, err := end()
		switch {
		case errors.Is(err, script.ErrNotExecuted), errors.Is(err, script.ErrMaybeExecuted):
			return undo.Unanswered
		case errors.Is(err, script.ErrConfiguration):
			return undo.Refused
		case err == nil && answered:
			return undo.Done
		case err == nil && found:
			if ended++; ended < calls {
				return undo.Found
			}
			return undo.Done
		}
		return undo.Absent
	})
}

// Pause waits for d. It returns false if ctx ended first.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// IsCallers reports whether an error of a call is the end of the caller's own context.
func IsCallers(err error) bool {
	_, ok := errors.AsType[*script.Error](err)
	return !ok
}

// IsCanceled is IsCallers for an error that may also be a refusal of the primitive's own.
func IsCanceled(err error) bool {
	return IsCallers(err) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}
