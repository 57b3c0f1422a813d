package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/neaptest"
)

// screen is a writer that keeps what a stream sends.
type screen struct {
	mu       sync.Mutex
	header   http.Header
	sent     bytes.Buffer
	flushes  int
	deadline time.Time
	broken   bool
}

func (s *screen) Header() http.Header { return s.header }
func (s *screen) WriteHeader(int)     {}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return 0, errors.New("broken pipe")
	}
	return s.sent.Write(p)
}

func (s *screen) FlushError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushes++
	return nil
}

func (s *screen) SetWriteDeadline(at time.Time) error {
	s.deadline = at
	return nil
}

// frames reads what was sent so far.
func (s *screen) frames(t *testing.T) (all []frame) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	text, is := strings.CutPrefix(s.sent.String(), "retry: 1000\n\n")
	if !is {
		t.Fatalf("got a stream that begins %.40q, want it to say when to come back", text)
	}
	for event := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		data, is := strings.CutPrefix(event, "data: ")
		var f frame
		if err := json.Unmarshal([]byte(data), &f); !is || strings.Contains(data, "\n") || err != nil {
			t.Fatalf("got the event %q (%v), want one line of data, in JSON", event, err)
		}
		all = append(all, f)
	}
	return all
}

// watch opens a stream within a bubble. It is over when the context has ended.
func watch(ctx context.Context, h http.Handler) (s *screen, over <-chan struct{}) {
	s = &screen{header: http.Header{}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.ServeHTTP(s, httptest.NewRequestWithContext(ctx, http.MethodGet, "/neap/events", nil))
	}()
	synctest.Wait()
	return s, ended
}

func TestFramesTellWhatHasHappenedSince(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := Handler(away(t), everyone, nil).(*console)
		c.timeline.hear(granted("p"))
		time.Sleep(10*time.Second + 100*time.Millisecond)
		ctx, leave := context.WithCancel(t.Context())
		s, over := watch(ctx, c)
		c.timeline.hear(granted("p"), granted("p"))
		time.Sleep(each + time.Millisecond)
		c.timeline.hear(granted("p"))
		time.Sleep(each)
		all := s.frames(t)
		if len(all) != 3 || s.flushes != 3 {
			t.Fatalf("got %d frames in %d flushes after a second, want 3", len(all), s.flushes)
		}
		if f := all[0]; f.Now != 11 || f.From != 11-59 || f.Shown != 60 || len(f.Lines) != 1 || f.Lines[0].Seconds[1]["granted"] != 1 {
			t.Errorf("the first frame: got %+v, want all of the last minute", f)
		}
		if f := all[1]; f.From != 11 || f.Now != 11 || len(f.Lines) != 1 || f.Lines[0].Seconds[11]["granted"] != 2 {
			t.Errorf("the second frame: got %+v, want the second under way, with 2", f)
		}
		if f := all[2]; f.From != 11 || f.Now != 12 || len(f.Lines) != 1 || f.Lines[0].Seconds[11]["granted"] != 3 {
			t.Errorf("the third frame: got %+v, want the second that was under way, with 3", f)
		}
		if left := time.Until(s.deadline); left <= 0 || left > patience {
			t.Errorf("got %v to write, want some of %v from the last frame on", left, patience)
		}
		leave()
		<-over
	})
}

// TestStreamsEnd, and leave no goroutine, or the bubble would not: when the client leaves or does not read, after a minute, and for a writer without Flush
// after one frame.
func TestStreamsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := Handler(away(t), everyone, nil)
		ctx, leave := context.WithCancel(t.Context())
		_, over := watch(ctx, h)
		leave()
		<-over

		s, over := watch(t.Context(), h)
		s.mu.Lock()
		s.broken = true
		s.mu.Unlock()
		began := time.Now()
		<-over
		if took := time.Since(began); took > each {
			t.Errorf("a connection that broke: got the end after %v, want it with the next frame", took)
		}

		began = time.Now()
		_, over = watch(t.Context(), h)
		<-over
		if took := time.Since(began); took != time.Minute {
			t.Errorf("a client that stays: got the end after %v, want it after a minute, so that allow is asked again", took)
		}

		w := httptest.NewRecorder()
		h.ServeHTTP(noFlush{w}, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/events", nil))
		if got := strings.Count(w.Body.String(), "data: "); got != 1 {
			t.Errorf("a writer that cannot flush: got %d frames, want 1, and the page to come back", got)
		}
	})
}

// TestStreamsAreBounded: one more is told so, and begins when another has ended.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	for most, opts := range map[int]*Options{2: {MaxStreams: 2}, DefaultMaxStreams: nil} {
		synctest.Test(t, func(t *testing.T) {
			h := Handler(away(t), everyone, opts)
			ctx, leave := context.WithCancel(t.Context())
			first, over := watch(ctx, h)
			var others sync.WaitGroup
			for range most - 1 {
				_, over := watch(t.Context(), h)
				others.Go(func() { <-over })
			}
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				w := ask(h, method, "/events")
				if w.Code != 503 || w.Header().Get("Retry-After") != "60" || w.Body.String() != "too many pages are open\n" || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
					t.Errorf("%s of stream %d: got %d %v %q, want 503, and when to come back", method, most+1, w.Code, w.Header(), w.Body)
				}
			}
			if w := ask(h, http.MethodGet, "/"); w.Code != 200 {
				t.Errorf("the page itself: got %d, want 200", w.Code)
			}
			first.frames(t) // it goes on
			leave()
			<-over
			last, over := watch(t.Context(), h)
			last.frames(t)
			<-over
			others.Wait()
		})
	}
}

// TestOthersPagesOpenNoStream: a page of another origin, which cannot read one, could keep operators from theirs.
func TestOthersPagesOpenNoStream(t *testing.T) {
	t.Parallel()
	h := Handler(away(t), everyone, nil)
	for site, want := range map[string]int{"cross-site": 403, "same-site": 403, "same-origin": 200, "none": 200} {
		if w := ask(h, http.MethodGet, "/events", "Sec-Fetch-Site", site); w.Code != want {
			t.Errorf("a stream for what a browser calls %s: got %d, want %d", site, w.Code, want)
		}
	}
	if w := ask(h, http.MethodGet, "/events", "Origin", "http://other.example"); w.Code != 403 { // without HTTPS, browsers say no more
		t.Errorf("a stream for another origin: got %d, want 403", w.Code)
	}
}

// noFlush hides what a writer has besides.
type noFlush struct{ w http.ResponseWriter }

func (n noFlush) Header() http.Header         { return n.w.Header() }
func (n noFlush) Write(p []byte) (int, error) { return n.w.Write(p) }
func (n noFlush) WriteHeader(status int)      { n.w.WriteHeader(status) }

// TestShutdownEndsStreams, of each server its own, and may be called again.
func TestShutdownEndsStreams(t *testing.T) {
	t.Parallel()
	h := Handler(away(t), everyone, nil)
	open := func() (*httptest.Server, *bufio.Reader) {
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		r := must(server.Client().Get(server.URL + "/events"))(t)
		t.Cleanup(func() { r.Body.Close() })
		body := bufio.NewReader(r.Body)
		must(body.ReadString('\n'))(t)
		return server, body
	}
	one, body := open()
	_, other := open()
	began := time.Now()
	if err := one.Config.Shutdown(t.Context()); err != nil || time.Since(began) > 30*time.Second {
		t.Errorf("Shutdown while a page is open: got %v after %v, want it not to wait", err, time.Since(began))
	}
	if err := one.Config.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown again: got %v, want nothing left to do", err)
	}
	for {
		if _, err := body.ReadString('\n'); err != nil {
			break
		}
	}
	for range 8 {
		must(other.ReadString('\n'))(t)
	}
}

// TestShutdownWhileAllowIsAsked: the stream that begins then ends, too.
func TestShutdownWhileAllowIsAsked(t *testing.T) {
	t.Parallel()
	asked, began := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(Handler(away(t), func(*http.Request) bool {
		close(asked)
		<-began
		return true
	}, nil))
	t.Cleanup(server.Close)
	server.Config.RegisterOnShutdown(func() { close(began) })
	var reader sync.WaitGroup
	reader.Go(func() {
		r, err := server.Client().Get(server.URL + "/events")
		if err != nil {
			t.Errorf("the stream: got %v, want it to begin", err)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	})
	<-asked
	ctx, cancel := context.WithTimeout(t.Context(), lasts/2)
	defer cancel()
	if err := server.Config.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: got %v after half the time of a stream, want it to end the stream", err)
	}
	reader.Wait()
}

// TestNoKeyIsInAStream: of all that is done with subjects, keys, items and buyers, no frame has one.
func TestNoKeyIsInAStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const secret = "alice-4711"
		r := neaptest.New(t)
		ctx := t.Context()
		st := must(store.Open(r.Client(), nil))(t)
		window := limit.FixedWindow{Name: "w", Limit: 1, Window: time.Hour}
		limiter := must(limit.New(st, "api", []limit.Policy{window}, nil))(t)
		flight := must(inflight.New(st, "slots", 5, nil))(t)
		locker := must(lock.New(st, "jobs", nil))(t)
		guard := must(idempotency.New(st, "orders", idempotency.Retry{}, nil))(t)
		shop := must(stock.New(st, "shop", nil))(t)
		h := Handler(st, everyone, &Options{LookUp: Primitives{Limiters: []*limit.Limiter{limiter}}, Actions: Primitives{Stocks: []*stock.Stock{shop}}})

		watching, leave := context.WithCancel(ctx)
		s, over := watch(watching, h)
		for range 3 {
			must(limiter.Take(ctx, secret))(t)
		}
		slot := must(flight.Try(ctx, secret))(t)
		held := must(locker.Try(ctx, secret))(t)
		run := must(guard.Begin(ctx, secret, secret))(t)
		must(shop.Open(ctx, secret, 5, time.Now().Add(time.Hour)))(t)
		reservation := must(shop.Reserve(ctx, secret, secret, secret, nil))(t)
		time.Sleep(each + time.Millisecond)

		all := s.frames(t)
		last := all[len(all)-1]
		want := map[store.Primitive]string{store.Limit: "api", store.InFlight: "slots", store.Lock: "jobs", store.Guard: "orders", store.Stock: "shop"}
		for _, l := range last.Lines {
			if want[l.Primitive] == l.Name {
				delete(want, l.Primitive)
			}
		}
		if len(want) > 0 {
			t.Errorf("got the lines %+v, want some of %v too", last.Lines, want)
		}
		for _, g := range last.Gauges {
			if g.Primitive != store.Limit && g.Primitive != store.Server && g.Active != 1 {
				t.Errorf("got the gauge %+v, want 1 held", g)
			}
		}
		if len(all[0].Things) != 2 || len(last.Things) != 0 {
			t.Errorf("got the offers %v and %v, want two in the first frame alone", all[0].Things, last.Things)
		}
		if text := s.sent.String(); strings.Contains(text, secret) || !strings.Contains(text, `"denied":2`) {
			t.Errorf("got the stream %s, want 2 denied, and no %s in it", text, secret)
		}
		leave()
		<-over
		for _, err := range []error{slot.Release(ctx), held.Release(ctx), run.Claim.Conclude(ctx, idempotency.DoneWithout()), reservation.Cancel(ctx)} {
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// TestAHandlerThatIsGoneObservesNothing.
func TestAHandlerThatIsGoneObservesNothing(t *testing.T) {
	t.Parallel()
	st := away(t)
	func() { ask(Handler(st, everyone, nil), "GET", "/") }()
	for began := time.Now(); st.Observed(); runtime.GC() {
		if time.Since(began) > 30*time.Second {
			t.Fatal("a handler that nothing refers to any more: got it observing, want it gone")
		}
		time.Sleep(time.Millisecond)
	}
}
