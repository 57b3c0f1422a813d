package callback_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/nethttp"
)

// If Verify does not return, or ends without a result, the provider is told in time to
// send again later. Redis is not asked, and nothing runs, then or later.
func TestVerifyIsBounded(t *testing.T) { //nolint:tparallel // each test reads the server's statistics
	t.Parallel()
	srv := redistest.NewStandalone(t)
	admin, rdb, prefix := srv.Admin(t), srv.Client(t), srv.Prefix(t)
	g := guard(t, rdb, prefix, idempotency.Options{})
	released := make(chan struct{})
	for name, c := range map[string]struct { //nolint:paralleltest // as above
		verify callback.Verify
		told   error
	}{
		"heeds its context": {func(ctx context.Context, _ *callback.Delivery) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, callback.ErrDeadline},
		"is proven too late": {func(ctx context.Context, d *callback.Delivery) ([]byte, error) {
			<-ctx.Done()
			return d.Body, nil
		}, callback.ErrDeadline},
		"hangs": {func(_ context.Context, d *callback.Delivery) ([]byte, error) {
			<-released
			return d.Body, nil
		}, callback.ErrDeadline},
		"panics": {func(context.Context, *callback.Delivery) ([]byte, error) { panic(errUnsigned) }, nil},
		"ends its goroutine": {func(context.Context, *callback.Delivery) ([]byte, error) {
			runtime.Goexit()
			return nil, nil
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := &shop{}, callback.Alipay()
			p.Deadline = time.Minute
			if c.told != nil {
				p.Deadline = 20 * time.Millisecond
			}
			ended := make(chan struct{})
			verify := func(ctx context.Context, d *callback.Delivery) ([]byte, error) {
				defer close(ended)
				return c.verify(ctx, d)
			}
			made, err := callback.New(p, g, verify, s.book, &callback.Options{OnError: s.hear})
			if err != nil {
				t.Fatal(err)
			}
			redistest.ResetStats(t, admin)
			began := time.Now()
			deliver(nethttp.Handler(made), alipayForm).is(t, p.Later)
			if took := time.Since(began); (c.told == nil) != (took < p.Deadline) {
				t.Errorf("got the answer Later after %v, want it before %v: %t", took, p.Deadline, c.told == nil)
			}
			if name == "hangs" {
				close(released)
			}
			<-ended
			asked := redistest.Asked(t, admin)
			if runs, _ := s.counts(); runs != 0 || len(asked) != 0 {
				t.Errorf("got %d runs, and Redis was asked %v, want 0 and nothing", runs, asked)
			}
			redistest.Await(t, time.Minute, "the hook to be told", func() bool { return c.told == nil || s.heard(c.told) })
			if s.heard(callback.ErrUnverified) || len(s.told) != 1 {
				t.Errorf("the hook got %v, want one error other than %v", s.told, callback.ErrUnverified)
			}
			deliver(endpoint(t, callback.Alipay(), g, s, callback.Options{}), alipayForm, signature, "").is(t, gate.Reply{
				Status: 401, Header: p.Refused.Header, Body: p.Refused.Body,
			})
		})
	}
	s, p := &shop{}, callback.Alipay()
	deliver(endpoint(t, p, g, s, callback.Options{}), alipayForm).is(t, p.Done)
	s.once(t, 1)
}

// If the client closes the connection while Verify runs, the hook is not told, and
// nothing runs.
func TestClientIsGoneDuringVerify(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	s, p := &shop{}, callback.Alipay()
	g := guard(t, srv.Client(t), srv.Prefix(t), idempotency.Options{})
	ctx, hangUp := context.WithCancel(t.Context())
	verify := func(ctx context.Context, d *callback.Delivery) ([]byte, error) {
		hangUp()
		<-ctx.Done()
		return d.Body, nil
	}
	made, err := callback.New(p, g, verify, s.book, &callback.Options{OnError: s.hear})
	if err != nil {
		t.Fatal(err)
	}
	deliverIn(ctx, nethttp.Handler(made), alipayForm).is(t, p.Later)
	if runs, _ := s.counts(); runs != 0 || len(s.told) != 0 || g.Stats() != (idempotency.Stats{}) {
		t.Errorf("got %d runs, the hook got %v, and stats are %+v, want 0, nothing and all 0",
			runs, s.told, g.Stats())
	}
}

// The context that the hook gets outlives the request and the claim.
func TestTheContextOfTheHookDoesNotEnd(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	g := guard(t, srv.Client(t), srv.Prefix(t), idempotency.Options{})
	type mark struct{}
	s, p := &shop{}, callback.Alipay()
	p.Deadline = 5 * time.Second // long enough for the handler to begin
	heard := make(chan error, 8)
	finish := make(chan struct{})
	s.handle = func(context.Context, *callback.Event) error {
		<-finish
		return errBook
	}
	made, err := callback.New(p, g, demoVerify, s.book, &callback.Options{OnError: func(ctx context.Context, err error) {
		if ctx.Value(mark{}) != "this request" {
			err = errors.Join(err, errors.New("its context is another's"))
		}
		heard <- errors.Join(err, ctx.Err())
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, hangUp := context.WithCancel(context.WithValue(t.Context(), mark{}, "this request"))
	deliverIn(ctx, nethttp.Handler(made), alipayForm).is(t, p.Later)
	hangUp()
	for _, want := range []error{callback.ErrDeadline, errBook} {
		if want == errBook {
			close(finish)
		}
		if err := <-heard; !errors.Is(err, want) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the hook got %v, want %v", err, want)
		}
	}
}

// While Verify cannot decide, the provider is told to send again later. The delivery is
// not reported as unverified, and Redis is not asked. When it is proven later, it is
// booked once.
func TestVerifyCannotDecide(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	admin, errDown := srv.Admin(t), errors.New("the provider's API is down")
	for name, unknown := range map[string]error{
		"bare":    callback.ErrCannotVerify,
		"wrapped": fmt.Errorf("%w: %w", callback.ErrCannotVerify, errDown),
		"joined":  errors.Join(errDown, callback.ErrCannotVerify),
	} {
		s, p := &shop{}, callback.Alipay()
		p.Deadline = time.Minute
		down := true
		verify := func(ctx context.Context, d *callback.Delivery) ([]byte, error) {
			if down {
				return d.Body, unknown
			}
			return demoVerify(ctx, d)
		}
		made, err := callback.New(p, guard(t, srv.Client(t), srv.Prefix(t)+name, idempotency.Options{}), verify, s.book,
			&callback.Options{OnError: s.hear})
		if err != nil {
			t.Fatal(err)
		}
		h := nethttp.Handler(made)
		redistest.ResetStats(t, admin)
		for range 2 {
			deliver(h, alipayForm).is(t, p.Later)
		}
		if asked := redistest.Asked(t, admin); len(asked) != 0 {
			t.Errorf("%s: Redis was asked %v, want nothing", name, asked)
		}
		if runs, _ := s.counts(); runs != 0 || len(s.told) != 2 || !s.heard(unknown) || s.heard(callback.ErrUnverified) {
			t.Errorf("%s: %d runs; the hook got %v, want %v twice", name, runs, s.told, unknown)
		}
		down = false
		for range 2 {
			deliver(h, alipayForm).is(t, p.Done)
		}
		s.once(t, 1)
	}
}
