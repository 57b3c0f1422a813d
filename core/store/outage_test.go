package store_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// lines are the lines that were logged, without the time.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(strings.Lines(l.text.String()))
}

func logged(t *testing.T, l *lines, want ...string) {
	t.Helper()
	got := l.all()
	if len(got) != len(want) {
		t.Fatalf("the log: got %d lines, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("line %d of the log: got %q, want %q in it", i, got[i], want[i])
		}
	}
}

// outage is a limiter on a Redis that fails when it is told to, and the log of that.
func outage(t *testing.T) (*late, *onStore, *lines) {
	t.Helper()
	var rdb late
	st, log := loggedStore(t, &rdb)
	return &rdb, &onStore{aLimit(t, st), st}, log
}

// loggedStore is a store of the client, and its log.
func loggedStore(t *testing.T, rdb script.Client) (*store.Store, *lines) {
	t.Helper()
	var log lines
	return storetest.Open(t, rdb, store.Options{Logger: log.logger()}), &log
}

type onStore struct {
	*limit.Limiter

	store *store.Store
}

// TestAnOutageIsLoggedOnce: one line after a second without an answer, and one after
// Redis has answered for a second without a failure.
func TestAnOutageIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, l, log := outage(t)
		for range 3 {
			_, _ = took(t, l.Limiter)
		}
		logged(t, log)
		rdb.by.Store(int64(time.Hour))
		for range 19 { // 950 ms
			_, _ = took(t, l.Limiter)
		}
		logged(t, log)
		for range 200 {
			_, _ = took(t, l.Limiter)
			time.Sleep(50 * time.Millisecond)
		}
		const lost = `level=WARN msg="neap: Redis does not answer" address=*store_test.late class="script: maybe executed" failed=20 for=950ms`
		logged(t, log, lost)
		rdb.by.Store(0)
		for range 20 {
			_, _ = took(t, l.Limiter)
			time.Sleep(100 * time.Millisecond)
		}
		const back = `level=INFO msg="neap: Redis answers again" address=*store_test.late failed=221 for=13.5s`
		logged(t, log, lost, back)
		for _, line := range log.all() {
			if strings.Contains(line, "{s}") || strings.Contains(line, "limit:") || strings.Contains(line, "budget") {
				t.Errorf("the log: got the line %s, want neither a key nor the text of an error", line)
			}
		}
		// The next outage is logged again.
		rdb.by.Store(int64(time.Hour))
		for range 100 {
			_, _ = took(t, l.Limiter)
		}
		logged(t, log, lost, back, "level=WARN")
	})
}

// TestRefusalsAreLoggedOnceAMinute, and neither with a key nor with the text of an error.
// An error that a script raises by itself is not logged.
func TestRefusalsAreLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	for text, code := range map[string]string{
		"NOPERM User neap has no permissions to run the 'evalsha' command":                                     `class="script: refused by configuration" code=NOPERM`,
		"ERR The user executing the script can't run this command or subcommand script: 1, on @user_script:1.": `class="script: refused by configuration" code=ERR`,
		"WRONGPASS invalid username-password pair or user is disabled.":                                        `class="script: refused by configuration" code=WRONGPASS`,
		"OOM command not allowed when used memory > 'maxmemory'.":                                              `class="script: not executed" code=OOM`,
		"ERR Error running script (call to f_1f): @user_script:1: @user_script: 1: -OOM command not allowed.":  `class="script: not executed" code=OOM`,
		"LOADING Redis is loading the dataset in memory":                                                       `class="script: not executed" code=LOADING`,
		"ERR unknown command 'evalsha', with args beginning with: 's'":                                         `class="script: refused by configuration" code=ERR`,
		"ERR DB index is out of range":                                                                         `class="script: refused by configuration" code=ERR`,
		"DENIED Redis is running in protected mode because protected mode is enabled":                          `class="script: refused by configuration" code=DENIED`,
		"ERR Unknown Redis command called from script script: 1, on @user_script:1.":                           `class="script: failed" code=ERR`,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                                    "",
		"ERR of a script script: 1, on @user_script:1.":                                                        "",
	} {
		synctest.Test(t, func(t *testing.T) {
			var log lines
			l := aLimit(t, storetest.Open(t, &saying{text: text}, store.Options{Logger: log.logger()}))
			want := []string(nil)
			for range 3 {
				if code != "" {
					want = append(want, `level=WARN msg="neap: Redis refuses calls; neap doctor says why" address=*store_test.saying `+code+"\n")
				}
				for range 100 {
					_, _ = l.Take(t.Context(), "s")
				}
				logged(t, &log, want...)
				time.Sleep(time.Minute)
			}
		})
	}
}

// TestUnknownRepliesAreAnOutage: something replies in place of Redis to every call. That
// is an outage in the log, in the events, in the gauges and for the breaker. The log has
// the code of the reply and not its text.
func TestUnknownRepliesAreAnOutage(t *testing.T) {
	t.Parallel()
	for text, code := range map[string]string{
		"upstream failure":         "none",
		"ERR Connection timed out": "ERR",
		"PROXY is away":            "PROXY",
	} {
		synctest.Test(t, func(t *testing.T) {
			var log lines
			var events []store.Event
			st := storetest.Open(t, &saying{text: text}, store.Options{Logger: log.logger()})
			st.Observe(func(_ context.Context, e store.Event) {
				if e.Primitive == store.Server {
					events = append(events, e)
				}
			})
			l := aLimit(t, st)
			for range 100 {
				d, _ := l.Take(t.Context(), "s")
				if !errors.Is(d.Cause, script.ErrMaybeExecuted) && !errors.Is(d.Cause, script.ErrNotExecuted) {
					t.Fatalf("%s: got a decision because of %v, want ErrMaybeExecuted, or ErrNotExecuted behind the breaker", text, d.Cause)
				}
				time.Sleep(20 * time.Millisecond)
			}
			logged(t, &log, `level=WARN msg="neap: Redis does not answer" address=*store_test.saying code=`+code+` class="script: maybe executed" failed=`)
			if len(events) != 1 || events[0].Outcome != store.Lost || !errors.Is(events[0].Class, script.ErrMaybeExecuted) {
				t.Errorf("%s: got the events %+v, want that the server is lost, with ErrMaybeExecuted", text, events)
			}
			for _, g := range st.Gauges() {
				if !g.Open || g.Primitive == store.Server && (!g.Lost || g.Failing < time.Second) {
					t.Errorf("%s: got the gauge %+v, want it open, and the server lost", text, g)
				}
			}
			for _, line := range log.all() {
				if strings.Contains(line, text) {
					t.Errorf("the log: got the line %s, want nothing of the reply but its code", line)
				}
			}
		})
	}
}

// TestALoggerMayUseTheStore: a log handler gets an answer if it asks a limiter of the
// same store, whose Redis is away.
func TestALoggerMayUseTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var rdb late
		rdb.by.Store(int64(time.Hour))
		asking := &asking{}
		asking.limit = aLimit(t, storetest.Open(t, &rdb, store.Options{Logger: slog.New(asking)}))
		for range 30 {
			_, _ = took(t, asking.limit)
		}
		if asking.lines == 0 {
			t.Error("got no line in the log, want one: this test is about it")
		}
	})
}

// asking is a log handler that limits what it logs.
type asking struct {
	slog.Handler

	limit *limit.Limiter
	lines int
}

func (a *asking) Enabled(context.Context, slog.Level) bool { return true }

func (a *asking) Handle(ctx context.Context, _ slog.Record) error {
	a.lines++
	_, err := a.limit.Take(ctx, "log")
	return err
}

// TestChangesAreToldInOrder: an outage has ended before its first line is written.
func TestChangesAreToldInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var rdb late
		var log lines
		var all recorded
		st := storetest.Open(t, &rdb, store.Options{Logger: slog.New(&slow{log.logger().Handler()})})
		l := aLimit(t, st)
		st.Observe(all.observe)
		rdb.by.Store(int64(time.Hour))
		for range 30 { // the call that has the line written waits for it
			go func() { _, _ = took(t, l) }()
			time.Sleep(100 * time.Millisecond)
		}
		rdb.by.Store(0)
		for range 100 {
			took(t, l)
			time.Sleep(100 * time.Millisecond)
		}
		if lines := log.all(); len(lines) > 0 {
			t.Errorf("got the lines %q already, want none: this test is about that", lines)
		}
		time.Sleep(time.Minute)
		logged(t, &log, "does not answer", "answers again")
		if got := all.take()[store.Server]; !slices.Equal(got, []store.Outcome{store.Lost, store.Back}) {
			t.Errorf("got the events %v, want that the server is lost, and then back", got)
		}
	})
}

// slow is a log handler that takes a minute for a warning.
type slow struct{ slog.Handler }

func (s *slow) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn {
		time.Sleep(time.Minute)
	}
	return s.Handler.Handle(ctx, r)
}

// TestTwoBudgetsAreOneOutage: Redis takes longer than limits allow, and less long than
// locks allow. That is one outage of the limits. It does not end while the limits have no
// answer, however many answers the locks have.
func TestTwoBudgetsAreOneOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, l, log := outage(t)
		_, _ = took(t, l.Limiter)
		rdb.by.Store(int64(100 * time.Millisecond))
		ask := caller(t, l.store, one, "k")
		for i := range 300 {
			if err := ask(); err != nil {
				t.Fatal(err)
			}
			if i < 50 || i%20 == 0 {
				for range 5 {
					_, _ = took(t, l.Limiter)
				}
			}
		}
		logged(t, log, "level=WARN")
	})
}

// TestAClosedClientIsNoAnswer: an error of the client itself does not end an outage.
func TestAClosedClientIsNoAnswer(t *testing.T) {
	t.Parallel()
	rdb := unused(t)
	_ = rdb.Close()
	var log lines
	l := aLimit(t, storetest.Open(t, rdb, store.Options{Logger: log.logger(), FirstContact: time.Millisecond}))
	redistest.Await(t, 20*time.Second, "a closed client to be taken for an outage", func() bool {
		_, _ = took(t, l)
		return len(log.all()) > 0
	})
	if !strings.Contains(log.all()[0], "level=WARN") {
		t.Errorf("got the log %q, want a warning", log.all())
	}
}

// TestAClusterThatIsLostAtFirstIsBack: until its first answer nothing is known of its
// nodes. The outage of all of them ends with that answer.
func TestAClusterThatIsLostAtFirstIsBack(t *testing.T) {
	t.Parallel()
	node := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer node.Close()
	synctest.Test(t, func(t *testing.T) {
		rdb, on, log := outage(t)
		on.store.FollowOnceKnown(func(context.Context, string) (*redis.Client, error) { return node, nil })
		rdb.by.Store(int64(time.Hour))
		for range 30 {
			took(t, on.Limiter)
		}
		logged(t, log, "does not answer")
		rdb.by.Store(0)
		time.Sleep(2 * store.OpenFor)
		if _, decided := took(t, on.Limiter); !decided {
			t.Error("a take from a cluster that answers: got a degraded decision, want one by Redis")
		}
		logged(t, log, "does not answer", "answers again")
		if n := on.store.Nodes(); n != 0 {
			t.Errorf("stored nodes: got %d, want none: the one that stood for all is forgotten, and its successor was not asked yet", n)
		}
	})
}

// TestOneFailureIsNoOutage while other calls are answered.
func TestOneFailureIsNoOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, l, log := outage(t)
		_, _ = took(t, l.Limiter)
		for i := range 100 {
			rdb.by.Store(0)
			if i%2 == 0 {
				rdb.by.Store(int64(time.Hour))
			}
			_, _ = took(t, l.Limiter)
			time.Sleep(10 * time.Millisecond)
		}
		logged(t, log)
	})
}

// TestAFailureAfterALongRestIsLogged: a service that asks once a minute is told of the
// outage at its first failure.
func TestAFailureAfterALongRestIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, l, log := outage(t)
		_, _ = took(t, l.Limiter)
		time.Sleep(time.Minute)
		rdb.by.Store(int64(time.Hour))
		_, _ = took(t, l.Limiter)
		logged(t, log, "level=WARN")
	})
}

// TestTheDefaultLoggerIsTheOneOfThen: slog.SetDefault has an effect after Open.
func TestTheDefaultLoggerIsTheOneOfThen(t *testing.T) { //nolint:paralleltest // it sets what is global
	synctest.Test(t, func(t *testing.T) {
		var rdb late
		rdb.by.Store(int64(time.Hour))
		l := aLimitOf(t, storetest.At(t, &rdb, "p"), 1e6, &limit.Options{Instances: 1})
		var log lines
		before := slog.Default()
		slog.SetDefault(log.logger())
		defer slog.SetDefault(before)
		_, _ = took(t, l)
		logged(t, &log, "level=WARN")
	})
}
