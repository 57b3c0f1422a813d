package limit

import (
	"cmp"
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/token"
	"github.com/neap-go/neap/core/internal/undo"
	"github.com/neap-go/neap/core/limit/internal/wire"
	"github.com/neap-go/neap/core/script"
)

// repeated is how long a call is repeated at most, after the first one that may have run. A
// repetition changes nothing as long as the marker of that one lives.
const repeated = wire.MarkerLives / 2

// conclusion is how a decision ends. A request without a conclusion is unspent. It is being
// concluded until its conclusion has succeeded or was dropped; then it is spent.
type conclusion struct {
	request *request
	how     ending
	actual  int64  // what the decision should have taken; 0 if it is given back
	token   string // names the marker
	stage   atomic.Uint32

	asking     chan struct{} // full during a call to Redis; guards the fields below
	until      time.Time     // when repetitions end; zero as long as no call may have run
	background bool          // whether the conclusion is repeated in the background
	told       func(error)   // is told if the conclusion is dropped there; of the first caller that has one
	last       error         // of the last call
}

// ending is what concludes a request.
type ending uint8

// These are the endings.
const (
	settles ending = iota
	refunds
	returns // gives back the rest of prepaid permits
)

// These are the stages of a conclusion.
const (
	concluding uint32 = iota
	concluded
	dropped
)

// end ends the conclusion. The estimates of its request are renewed until then.
func (c *conclusion) end(how uint32) {
	c.stage.Store(how)
	c.request.kept.End()
}

// conclude begins the conclusion of a request. A request has one. While it is being concluded,
// every later call gets that conclusion, unless it is of another kind.
func (q *request) conclude(how ending, actual int64) (*conclusion, error) {
	c := &conclusion{request: q, how: how, actual: actual}
	if q.open || q.local { // in process, where nothing can fail
		c.end(concluded)
	} else {
		c.token, c.asking = cmp.Or(q.Token, token.New()), make(chan struct{}, 1)
	}
	if q.conclusion.CompareAndSwap(nil, c) {
		return c, nil
	}
	c = q.conclusion.Load()
	if c.how != how || c.stage.Load() != concluding {
		return nil, c.refusal(how)
	}
	return c, nil
}

// refusal says why a request cannot be concluded, or not once more.
func (c *conclusion) refusal(how ending) error {
	why := "it was settled before"
	switch stage := c.stage.Load(); {
	case stage == dropped:
		why = "it was given up before: Redis did not confirm it"
	case c.how == settles && stage == concluding:
		why = "it is being settled"
	case c.how != settles && stage == concluding:
		why = "it is being given back"
	case c.how != settles:
		why = "it was given back before"
	}
	if how == settles {
		return unsettled(why)
	}
	return refuse(why)
}

// finish asks Redis to conclude. If Redis does not confirm it, finish goes on in the
// background, also if a hook ends the goroutine.
func (c *conclusion) finish(ctx context.Context) (s Settlement, err error) {
	ctx = context.WithoutCancel(ctx)
	c.asking <- struct{}{}
	defer func() { <-c.asking }()
	if c.stage.Load() != concluding || c.expired() {
		return Settlement{}, c.refusal(c.how)
	}
	if c.told == nil {
		c.told = undo.Dropped(ctx)
	}
	l, began := c.request.of, time.Now()
	err = background.ErrEnded
	defer func() {
		switch {
		case err == nil, errors.Is(err, ErrRefund), c.background:
		case l.late.Full():
			err = c.drop(err)
		default:
			c.background = true
			l.late.Keep(time.Now(), math.MaxInt64, c.again)
		}
	}()
	err = ask.Repeat(ctx, began, l.opts.Budget, func() (err error) {
		s, err = c.ask(ctx, c.request.of.remote.Settle)
		return err
	})
	return s, err
}

// again makes one attempt in the background.
func (c *conclusion) again() undo.Result {
	c.asking <- struct{}{}
	defer func() { <-c.asking }()
	if c.stage.Load() != concluding {
		return undo.Done
	}
	if c.expired() {
		if err, told := c.drop(c.last), c.told; told != nil {
			background.Go(func() { told(err) })
		}
		return undo.Done
	}
	_, err := c.ask(context.Background(), c.request.of.remote.Late)
	if err != nil && !errors.Is(err, ErrRefund) {
		return undo.Unanswered
	}
	c.request.of.count.late.Add(1)
	return undo.Done
}

// expired reports whether the marker of an earlier call may end soon.
func (c *conclusion) expired() bool { return !c.until.IsZero() && time.Now().After(c.until) }

// ask asks Redis once.
func (c *conclusion) ask(ctx context.Context, sc *script.Script) (Settlement, error) {
	q := c.request
	if longest, _ := q.of.longest(q); c.how != settles && time.Since(q.Answered) >= longest {
		c.end(concluded)
		return Settlement{}, errTooLate
	}
	first := c.until.IsZero()
	if first { // before the call, since a hook may end the goroutine
		c.until = time.Now().Add(repeated)
	}
	c.last = background.ErrEnded
	told, err := q.of.remote.Conclude(ctx, sc, &wire.Conclusion{Request: &q.Request, Settles: c.how == settles, Actual: c.actual, Marker: c.token})
	var s Settlement
	if c.how == settles && err == nil {
		s = q.of.settlement(q, told.Readings, told.Forgiven)
	}
	switch {
	case err != nil:
		c.last = err
		if first && told.Untouched {
			c.until = time.Time{}
		}
	case c.how != settles && !told.Changed:
		c.end(concluded)
		q.of.changed(q.Subject)
		err = errNothingLeft
	default:
		c.succeeded(s)
	}
	return s, err
}

// succeeded notes that Redis, or the state in process, has changed.
func (c *conclusion) succeeded(s Settlement) {
	c.end(concluded)
	q := c.request
	q.of.changed(q.Subject)
	switch c.how {
	case settles:
		q.of.count.settled.Add(1)
		q.of.count.forgiven.Add(s.Forgiven)
	case refunds:
		q.of.count.refunded.Add(1)
	case returns: // no decision was given back
	}
}

// drop gives the conclusion up.
func (c *conclusion) drop(err error) error {
	c.end(dropped)
	q := c.request
	q.of.count.dropped.Add(1)
	return &DroppedError{Subject: q.Subject, Taken: q.Cost, Actual: c.actual, Err: err}
}
