package behind

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// logged is what a store has logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logged) has(parts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, part := range parts {
		if !strings.Contains(l.text.String(), part) {
			return false
		}
	}
	return true
}

// watchedBudget is a fourth of the time for which calls must fail before a breaker opens.
const watchedBudget = time.Second

// watched returns a store on a client, with its log.
func watched(t *testing.T, rdb *redis.Client, prefix string, budget time.Duration) (*store.Store, *logged) {
	t.Helper()
	log := new(logged)
	return storetest.Open(t, rdb, store.Options{
		Prefix: prefix, Budget: budget, Logger: slog.New(slog.NewTextHandler(log, nil)),
	}), log
}

func limiter(t *testing.T, st *store.Store) *limit.Limiter {
	t.Helper()
	l, err := limit.New(st, "l", []limit.Policy{limit.FixedWindow{Limit: 1e6, Window: time.Hour}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// crowd has many callers take permits until stop returns true.
func crowd(t *testing.T, l *limit.Limiter, subject func(i int) string, each func(subject string, d limit.Decision), stop func() bool) {
	t.Helper()
	const callers = 32
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for !stop() {
				d, err := l.Take(t.Context(), subject(i))
				if err != nil {
					t.Errorf("a limit that fails local: got %v, want a decision", err)
					return
				}
				each(subject(i), d)
			}
		})
	}
	all.Wait()
}

// TestUnknownRepliesAreAnOutage, in the queue too: in the log with the code of the reply,
// in the gauges, and for the breaker.
func TestUnknownRepliesAreAnOutage(t *testing.T) {
	t.Parallel()
	for line, code := range map[string]string{
		"-PROXY timed out": "code=PROXY", "$-1": "code=none", "*0": "code=none",
		"+timed out": "", // go-redis cannot read it in reply to a merged call, which then had no reply
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			p := newProxied(t)
			rdb := p.server.Client(t, func(o *redis.Options) { o.Dialer, o.ContextTimeoutEnabled = p.Dial, true })
			st, log := watched(t, rdb, p.prefix, watchedBudget)
			l := limiter(t, st)
			if err := l.Warm(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.Answer(line, redistest.After, ever, "evalsha", "eval")
			lost := func() (is bool) {
				for _, g := range st.Gauges() {
					is = is || g.Primitive == store.Server && g.Open && g.Lost && g.Failing > 0
				}
				return is && log.has("neap: Redis does not answer", code, `class="script: maybe executed"`)
			}
			until := time.Now().Add(time.Minute)
			crowd(t, l, func(i int) string { return fmt.Sprint(i) }, func(_ string, d limit.Decision) {
				if !errors.Is(d.Cause, script.ErrMaybeExecuted) && !errors.Is(d.Cause, script.ErrNotExecuted) {
					t.Errorf("got a decision because of %v, want ErrMaybeExecuted, or ErrNotExecuted behind the breaker", d.Cause)
				}
			}, func() bool { return lost() || time.Now().After(until) })
			if !lost() || log.has("timed out") {
				t.Errorf("got the gauges %+v and the log\n%s\nwant an outage, and nothing of the reply but its code", st.Gauges(), &log.text)
			}
			p.Answer("", redistest.After, 0)
			redistest.Await(t, time.Minute, "the end of the outage", func() bool {
				_, _ = l.Take(t.Context(), "s")
				return log.has("neap: Redis answers again")
			})
		})
	}
}

// TestAMisconfigurationIsNoOutage: the server refuses what a client sends before its first
// call. That is logged as a refusal.
func TestAMisconfigurationIsNoOutage(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	st, log := watched(t, srv.Client(t, func(o *redis.Options) { o.Username, o.Password, o.DB = "default", "", 99 }), srv.Prefix(t), budget)
	l := limiter(t, st)
	for range 100 {
		if d, err := l.Take(t.Context(), "s"); err != nil || !errors.Is(d.Cause, script.ErrConfiguration) {
			t.Fatalf("a database that is not there: got %v because of %v, want ErrConfiguration", err, d.Cause)
		}
	}
	if !log.has("neap: Redis refuses calls", "code=ERR", "refused by configuration") || log.has("does not answer") {
		t.Errorf("got the log\n%s\nwant a refusal, and no outage", &log.text)
	}
}
