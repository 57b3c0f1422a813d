package callback_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/nethttp"
)

// hooked are deliveries about which the hook is told, each from another place of the
// code.
func hooked(p callback.Preset) map[string]struct {
	body, signed string
	handle       callback.Handler
	want         gate.Reply
} {
	unsigned, large := p.Refused, p.Refused
	unsigned.Status, large.Status = 401, 413
	type delivery = struct {
		body, signed string
		handle       callback.Handler
		want         gate.Reply
	}
	return map[string]delivery{
		"large":     {alipayForm + strings.Repeat(" ", 200), "ok", nil, large},
		"unsigned":  {alipayForm, "", nil, unsigned},
		"malformed": {"notify_id=n1", "ok", nil, p.Refused},
		"fails":     {alipayForm, "ok", func(context.Context, *callback.Event) error { return errBook }, p.Later},
		"panics":    {alipayForm, "ok", func(context.Context, *callback.Event) error { panic(errBook) }, p.Later},
		"rejects":   {alipayForm, "ok", func(context.Context, *callback.Event) error { return callback.Reject(errBook) }, p.Refused},
	}
}

// A hook that panics does not end the process. Anybody could cause such a panic.
func TestHookPanics(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	rdb, prefix := srv.Client(t), srv.Prefix(t)
	p := callback.Alipay()
	for name, c := range hooked(p) {
		s := &shop{handle: c.handle}
		made, err := callback.New(p, guard(t, rdb, prefix+name, idempotency.Options{}), demoVerify, s.book, &callback.Options{
			MaxBody: 200,
			OnError: func(ctx context.Context, err error) {
				s.hear(ctx, err)
				panic(err)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		deliver(nethttp.Handler(made), c.body, signature, c.signed).is(t, c.want)
		if len(s.told) != 1 {
			t.Errorf("%s: the hook got %v, want one error", name, s.told)
		}
	}
}

// A hook that hangs delays no answer beyond the deadline.
func TestHookHangs(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	rdb, prefix := srv.Client(t), srv.Prefix(t)
	p := callback.Alipay()
	p.Deadline = 20 * time.Millisecond
	deliveries := hooked(p)
	slow := deliveries["fails"]
	finish := make(chan struct{})
	slow.handle = func(context.Context, *callback.Event) error {
		<-finish
		return nil
	}
	deliveries["slow"] = slow
	for name, c := range deliveries {
		s, g := &shop{handle: c.handle}, guard(t, rdb, prefix+name, idempotency.Options{})
		if err := g.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		release := make(chan struct{})
		made, err := callback.New(p, g, demoVerify, s.book, &callback.Options{
			MaxBody: 200,
			OnError: func(ctx context.Context, err error) {
				<-release
				s.hear(ctx, err)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		want := p.Later
		if name == "large" {
			want = c.want
		}
		deliver(nethttp.Handler(made), c.body, signature, c.signed).is(t, want)
		close(release)
		redistest.Await(t, time.Minute, name+": the hook to be told of the deadline", func() bool {
			return name == "large" || s.heard(callback.ErrDeadline)
		})
	}
	close(finish)
}
