package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

const plainText = "Content-Type: text/plain; charset=utf-8\n"

// What Alipay is told.
var (
	acknowledged = answer{200, plainText, "success"}
	later        = answer{503, plainText, "fail"}
	refused      = answer{400, plainText, "fail"}
	unproven     = answer{401, plainText, "fail"}
	tooLong      = answer{413, plainText, "fail"}
)

// till is a shop behind one framework: its books, and what the provider was told.
type till struct {
	srv    *redistest.Server
	admin  *redis.Client
	prefix string
	guard  *idempotency.Guard
	// Addresses of endpoints whose deadline is far, and near.
	patient, hasty string

	mu     sync.Mutex
	runs   int
	booked map[string]int
	acked  int
	handle callback.Handler // before it is booked
}

func (s *till) book(ctx context.Context, e *callback.Event) error {
	s.mu.Lock()
	s.runs++
	handle := s.handle
	s.mu.Unlock()
	if handle != nil {
		if err := handle(ctx, e); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.booked[e.DeliveryID]++
	return nil
}

// on sets what the handler does from now on.
func (s *till) on(handle callback.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handle = handle
}

// counts are the handler's runs, and the events that are booked.
func (s *till) counts() (runs, booked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs, len(s.booked)
}

// deliver sends an event, and sees to it that what is acknowledged is booked.
func (s *till) deliver(t *testing.T, address, id string) answer {
	t.Helper()
	return s.send(t, address, "ok", "notify_id="+id+"&out_trade_no=o&trade_status=s", id)
}

func (s *till) send(t *testing.T, address, signature, body, id string) answer {
	t.Helper()
	got, err := post(address, "/orders/1", body, "X-Demo-Signature", signature)
	if err != nil {
		t.Errorf("%s: got %v, want an answer", id, err)
	}
	if got.status/100 == 2 || got.body == acknowledged.body {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.acked++
		if s.booked[id] != 1 {
			t.Errorf("%s is acknowledged, and booked %d times, want once", id, s.booked[id])
		}
	}
	return got
}

func (s *till) expect(t *testing.T, got, want answer) {
	t.Helper()
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// lose has the claim of an event be lost, and its holder know it.
func (s *till) lose(ctx context.Context, t *testing.T, id string) {
	t.Helper()
	if err := s.admin.Del(t.Context(), s.prefix+":guard:callbacks:{alipay:"+id+"}").Err(); err != nil {
		t.Error(err)
	}
	claim, _ := idempotency.FromContext(ctx)
	if err := claim.Renew(t.Context()); !errors.Is(err, idempotency.ErrLost) {
		t.Errorf("Renew: got %v, want %v", err, idempotency.ErrLost)
	}
}

// resume has Redis answer again.
func (s *till) resume(t *testing.T) {
	t.Helper()
	s.srv.Resume(t)
	redistest.Await(t, time.Minute, "what was begun or ended meanwhile to be noted", s.idle)
}

// idle reports whether Redis has confirmed all that was begun and ended.
func (s *till) idle() bool {
	stats := s.guard.Stats()
	return stats.Running+stats.Undoing+stats.Concluding == 0
}

func verified(ctx context.Context, d *callback.Delivery) ([]byte, error) {
	switch d.Header.Get("X-Demo-Signature") {
	case "ok":
		return d.Body, nil
	case "hang":
		<-ctx.Done()
		return d.Body, nil
	case "panic":
		panic(errBooks)
	case "unknown":
		return nil, fmt.Errorf("%w: %w", callback.ErrCannotVerify, errBooks)
	}
	return nil, errors.New("it is not signed")
}

// faults each befall an event before it is delivered once more, which is to be
// acknowledged.
var faults = map[string]struct {
	befall func(t *testing.T, s *till, id string)
	runs   int // with that of the last delivery, if it is one
}{
	"in flight": {func(t *testing.T, s *till, id string) {
		begun, finish, first := make(chan struct{}), make(chan struct{}), make(chan answer)
		s.on(func(context.Context, *callback.Event) error {
			close(begun)
			<-finish
			return nil
		})
		go func() { first <- s.deliver(t, s.patient, id) }()
		<-begun
		for range 3 {
			s.expect(t, s.deliver(t, s.patient, id), later)
		}
		close(finish)
		s.expect(t, <-first, acknowledged)
	}, 1},
	"handler error": {func(t *testing.T, s *till, id string) {
		s.on(func(context.Context, *callback.Event) error { return errBooks })
		s.expect(t, s.deliver(t, s.patient, id), later)
	}, 2},
	"handler panics": {func(t *testing.T, s *till, id string) {
		s.on(func(context.Context, *callback.Event) error { panic(errBooks) })
		s.expect(t, s.deliver(t, s.patient, id), later)
	}, 2},
	"handler abandons": {func(t *testing.T, s *till, id string) {
		s.on(func(ctx context.Context, _ *callback.Event) error {
			claim, _ := idempotency.FromContext(ctx)
			return errors.Join(claim.Conclude(ctx, idempotency.NothingDone()), errBooks)
		})
		s.expect(t, s.deliver(t, s.patient, id), later)
	}, 2},
	"store down before": {func(t *testing.T, s *till, id string) {
		s.srv.Pause(t)
		s.expect(t, s.deliver(t, s.patient, id), later)
		s.resume(t)
	}, 1},
	"store down during": {func(t *testing.T, s *till, id string) {
		s.on(func(ctx context.Context, _ *callback.Event) error {
			s.srv.Pause(t)
			defer s.srv.Resume(t)
			claim, _ := idempotency.FromContext(ctx)
			brief, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			if err := claim.Renew(brief); err == nil {
				return errors.New("the store is not down")
			}
			return nil
		})
		s.expect(t, s.deliver(t, s.patient, id), acknowledged)
	}, 1},
	"store down after": {func(t *testing.T, s *till, id string) {
		s.on(func(context.Context, *callback.Event) error {
			s.srv.Pause(t)
			return nil
		})
		s.expect(t, s.deliver(t, s.patient, id), later)
		s.resume(t)
	}, 1},
	"store down after a failure": {func(t *testing.T, s *till, id string) {
		s.on(func(context.Context, *callback.Event) error {
			s.srv.Pause(t)
			return errBooks
		})
		s.expect(t, s.deliver(t, s.patient, id), later)
		s.resume(t)
	}, 2},
	"lost lease": {func(t *testing.T, s *till, id string) {
		s.on(func(ctx context.Context, _ *callback.Event) error {
			s.lose(ctx, t, id)
			return context.Cause(ctx)
		})
		s.expect(t, s.deliver(t, s.patient, id), later)
	}, 2},
	"lost lease, taken over": {func(t *testing.T, s *till, id string) {
		s.on(func(ctx context.Context, _ *callback.Event) error {
			s.on(nil)
			s.lose(ctx, t, id)
			s.expect(t, s.deliver(t, s.patient, id), acknowledged)
			return context.Cause(ctx)
		})
		s.expect(t, s.deliver(t, s.patient, id), later)
	}, 2},
	"deadline passed": {func(t *testing.T, s *till, id string) {
		finish := make(chan struct{})
		s.on(func(ctx context.Context, _ *callback.Event) error {
			<-finish
			return ctx.Err()
		})
		before := s.guard.Stats().Completed
		s.expect(t, s.deliver(t, s.hasty, id), later)
		close(finish)
		redistest.Await(t, time.Minute, "the end of the handler to be noted", func() bool {
			return s.guard.Stats().Completed > before
		})
	}, 1},
	"deadline passed while verified": {func(t *testing.T, s *till, id string) {
		s.expect(t, s.send(t, s.hasty, "hang", "notify_id="+id+"&out_trade_no=o&trade_status=s", id), later)
	}, 1},
	"verification panics": {func(t *testing.T, s *till, id string) {
		s.expect(t, s.send(t, s.patient, "panic", "notify_id="+id+"&out_trade_no=o&trade_status=s", id), later)
	}, 1},
	"verification does not know": {func(t *testing.T, s *till, id string) {
		s.expect(t, s.send(t, s.patient, "unknown", "notify_id="+id+"&out_trade_no=o&trade_status=s", id), later)
	}, 1},
	"failed verification": {func(t *testing.T, s *till, id string) {
		redistest.Settled(func() int { return len(redistest.Asked(t, s.admin)) }) // another fault's probe may come late
		redistest.ResetStats(t, s.admin)
		for _, signature := range []string{"", "wrong"} {
			s.expect(t, s.send(t, s.patient, signature, "notify_id="+id+"&out_trade_no=o&trade_status=s", id), unproven)
		}
		if asked := redistest.Asked(t, s.admin); len(asked) != 0 {
			t.Errorf("Redis was asked: %v", asked)
		}
	}, 1},
	"missing or malformed key": {func(t *testing.T, s *till, id string) {
		for _, body := range []string{
			"", "%", "notify_id=&out_trade_no=o&trade_status=s", "out_trade_no=o&trade_status=s",
			"notify_id=" + id + "&notify_id=" + id + "&out_trade_no=o&trade_status=s", "notify_id=" + id, `{"notify_id":"` + id + `"}`,
		} {
			s.expect(t, s.send(t, s.patient, "ok", body, id), refused)
		}
		s.expect(t, s.send(t, s.patient, "ok", "notify_id="+id+strings.Repeat("x", callback.DefaultMaxBody), id), tooLong)
	}, 1},
}

// Behind every framework, whatever befalls an event, nothing is acknowledged that
// is not booked; nothing is booked twice, and the next delivery is acknowledged.
func (f Fleet) testNothingIsAcknowledgedThatIsNotBooked(t *testing.T) {
	t.Parallel()
	for _, framework := range f.names() {
		t.Run(framework, func(t *testing.T) {
			t.Parallel()
			srv := redistest.NewStandalone(t)
			prefix := srv.Prefix(t)
			s := &till{srv: srv, admin: srv.Admin(t), prefix: prefix, booked: map[string]int{}}
			rdb := srv.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
			var err error
			s.guard, err = idempotency.New(storetest.At(t, rdb, prefix), "callbacks", idempotency.Retry{}, &idempotency.Options{
				Retention: 48 * time.Hour, Budget: 5 * time.Second, // a busy machine answers late
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.guard.Warm(t.Context()); err != nil {
				t.Fatal(err)
			}
			for address, deadline := range map[*string]time.Duration{&s.patient: time.Minute, &s.hasty: time.Second} {
				p := callback.Alipay()
				p.Deadline = deadline
				endpoint, err := callback.New(p, s.guard, verified, s.book, nil)
				if err != nil {
					t.Fatal(err)
				}
				*address = f[framework].Endpoint(t, endpoint)
			}
			for name, fault := range faults {
				t.Run(name, func(t *testing.T) { // in turn: some stop the server
					id := strings.NewReplacer(" ", "-", ",", "").Replace(name)
					before, _ := s.counts()
					fault.befall(t, s, id)
					s.on(nil)
					for range 2 {
						s.expect(t, s.deliver(t, s.patient, id), acknowledged)
					}
					runs, _ := s.counts()
					if runs -= before; runs != fault.runs {
						t.Errorf("got %d runs, want %d", runs, fault.runs)
					}
					if n := s.booked[id]; n != 1 {
						t.Errorf("%s is booked %d times, want once", id, n)
					}
				})
			}
			if _, booked := s.counts(); booked != len(faults) || s.acked < booked {
				t.Errorf("got %d booked and %d acknowledgements, want %d booked, and no fewer acknowledgements",
					booked, s.acked, len(faults))
			}
		})
	}
}
