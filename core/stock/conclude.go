package stock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/internal/undo"
	"github.com/neap-go/neap/core/store"
)

// Confirm sells the units. If the reservation has lapsed, Confirm reserves the units
// again while there are any. If there are none, it returns [ErrLapsed] for good, and you
// must undo what was done for the buyer. You may call Confirm again. It waits for a
// call in progress, such as a renewal. Then it takes and costs what Reserve does, or nothing
// if the units are sold already. It does not end early with ctx: it uses only the values of
// ctx.
//
// Confirm returns
//
//   - [ErrLapsed] as above, and also if the buyer has another reservation by now;
//   - [ErrCancelled] if the reservation was cancelled;
//   - [ErrUnknown] if the item is gone, [ErrQuantity] if the id has another quantity, and
//     [ErrDisagrees] if the record disagrees with itself;
//   - a [*script.Error] if Redis did not confirm it. neap then repeats the confirmation
//     in the background for a lease, and for longer while Redis does not answer, unless
//     Cancel is called. If Redis refuses it for that long, it is given up, and counted as
//     Dropped.
func (r *Reservation) Confirm(ctx context.Context) error {
	if !r.made() {
		return errReservation
	}
	misuse.Context(ctx)
	if r.isToBe(sold) {
		return nil
	}
	return r.conclude(context.WithoutCancel(ctx), sold, r.confirm)
}

// Cancel gives the units back, whether they are held or sold. You may call it again. Like
// Confirm, it does not end early with ctx. It costs one round trip.
//
// If another call of Reserve has the reservation under the same id, Cancel leaves the
// part of that call alone, unless Resume made this reservation. If a call has confirmed
// beside eight others, as a call of Resume may, only Resume can cancel.
//
// Cancel returns nil also if there is nothing to give back. Otherwise it returns
// [ErrUnknown] if the item is gone, [ErrDisagrees], which gives nothing back, or a
// [*script.Error] if Redis did not confirm it. After a *script.Error the cancellation goes
// on in the background, unless Resume made the reservation. If the units are on a lease
// and Redis refuses the cancellation until the lease ends, the lease gives them back. What
// is sold, or may be, has no lease: its cancellation goes on until Redis has answered, or
// is given up as [Stats] says.
func (r *Reservation) Cancel(ctx context.Context) error {
	if !r.made() {
		return errReservation
	}
	misuse.Context(ctx)
	r.ended(ErrCancelled)
	if r.isToBe(cancelled) {
		return nil
	}
	return r.conclude(context.WithoutCancel(ctx), cancelled, r.cancel)
}

// isToBe notes the wanted state, and reports whether the reservation has it already.
func (r *Reservation) isToBe(to state) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wants != cancelled { // cancelled is final
		r.wants = to
	}
	return r.state == to && r.wants == to
}

// conclude confirms or cancels. If Redis does not answer, conclude repeats that in the
// background. A caller of undo.WithDropped does not call again, and is told if that fails.
func (r *Reservation) conclude(ctx context.Context, to state, say func(context.Context) (ask.Doubt, error)) error {
	asked, told := time.Now(), undo.Dropped(ctx)
	err := background.ErrEnded // if a hook of the client ends the goroutine
	defer func() {
		if told != nil && err != nil && !isScripts(err) {
			r.unrenewed.Store(true)
		}
	}()
	in, err := r.say(ctx, to, say)
	if err == nil || !isScripts(err) || to == cancelled && r.resumed {
		return err
	}
	r.of.count.unconfirmed.Add(1)
	in.Add(ask.Doubt{Last: asked, Calls: 1})
	last := err
	keep := to == cancelled && r.lasts.Load() && !r.of.late.Full() // what is sold does not lapse
	start := r.of.late.Telling(keep, func() { r.failed(told, fmt.Errorf("%w: %w", ErrDropped, last)) })
	in.TakeBack(start, r.of.opts.Lease, true, func() (bool, error) {
		_, err := r.say(context.Background(), to, say)
		if isScripts(err) {
			last = err
			return false, err
		}
		r.failed(told, err)
		return true, nil
	})
	return err
}

// failed notes how a conclusion in the background ended.
func (r *Reservation) failed(told func(error), err error) {
	if err != nil {
		r.unrenewed.Store(true)
	}
	if told != nil && err != nil && !errors.Is(err, ErrCancelled) { // Cancel reports its own end
		background.Go(func() { told(err) })
	}
}

// say asks Redis, unless Redis has confirmed that already, or something else is wanted by
// now.
func (r *Reservation) say(ctx context.Context, to state, say func(context.Context) (ask.Doubt, error)) (ask.Doubt, error) {
	r.asking <- struct{}{}
	defer func() { <-r.asking }()
	r.mu.Lock()
	is, wants := r.state, r.wants
	r.mu.Unlock()
	switch {
	case wants == cancelled && to != cancelled:
		return ask.Doubt{}, ErrCancelled
	case is == to:
		return ask.Doubt{}, nil
	case is == lapsed && to == sold:
		return ask.Doubt{}, ErrLapsed
	}
	return say(ctx)
}

func (r *Reservation) confirm(ctx context.Context) (ask.Doubt, error) {
	_, _, in, err := r.of.take(ctx, &r.question, confirmed)
	r.doubts(in, true)
	switch {
	case err == nil:
		r.becomes(sold)
		r.ended(errSold)
		r.of.count.confirmed.Add(1)
		r.notify(ctx, store.Completed)
	case errors.Is(err, ErrSoldOut), errors.Is(err, ErrYours):
		r.becomes(lapsed)
		over := r.ended(ErrLapsed)
		r.takeBack()
		r.of.count.refused.Add(1)
		if !over { // otherwise the loss was reported, or Cancel reports its own end
			r.notify(ctx, store.Lost)
		}
		err = ErrLapsed
	case errors.Is(err, ErrUnknown), errors.Is(err, ErrQuantity):
		r.notify(ctx, store.Refused)
	case errors.Is(err, ErrDisagrees):
		r.notify(ctx, store.Disagreed)
	}
	return in, err
}

func (r *Reservation) cancel(ctx context.Context) (in ask.Doubt, err error) {
	var n int64
	if r.resumed {
		n, err = r.of.once(ctx, cancelScript, r.question.key, r.question.buyer, r.question.id, "")
	} else {
		n, _, in, err = r.of.number(ctx, cancelScript, r.question.key, r.question.buyer, r.question.id, r.question.token)
	}
	if err != nil {
		return in, err
	}
	r.takeBack()
	if n == disagrees { // nothing was given back, and a later call may
		r.notify(ctx, store.Disagreed)
	} else {
		r.becomes(cancelled)
		r.of.count.cancellations.Add(1)
		r.notify(ctx, store.Abandoned)
	}
	return in, fault(n)
}
