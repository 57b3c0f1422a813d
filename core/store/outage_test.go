package store_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/storetest"
)

// lines are what was logged, without the time.
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
	return strings.Split(strings.TrimSuffix(l.text.String(), "\n"), "\n")
}

func logged(t *testing.T, l *lines, want ...string) {
	t.Helper()
	got := l.all()
	if len(want) == 0 {
		want = []string{""}
	}
	if len(got) != len(want) {
		t.Fatalf("got %d lines, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("line %d is %q, want %q in it", i, got[i], want[i])
		}
	}
}

// outage is a limiter on a Redis that fails when it is told to, and what is logged.
func outage(t *testing.T) (*late, *limit.Limiter, *lines) {
	t.Helper()
	var rdb late
	var log lines
	st := storetest.Open(t, &rdb, store.Options{Logger: log.logger()})
	return &rdb, aLimit(t, st), &log
}

// TestAnOutageIsLoggedOnce: one line when a second has passed without an answer, and
// one when Redis has answered for a second without a failure.
func TestAnOutageIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, l, log := outage(t)
		for range 3 {
			_, _ = took(t, l)
		}
		logged(t, log)
		rdb.by.Store(int64(time.Hour))
		for range 19 { // 950 ms
			_, _ = took(t, l)
		}
		logged(t, log)
		for range 200 {
			_, _ = took(t, l)
			time.Sleep(50 * time.Millisecond)
		}
		const lost = `level=WARN msg="neap: Redis does not answer" address="" class="script: maybe executed" failed=20 for=`
		logged(t, log, lost)
		rdb.by.Store(0)
		for range 20 {
			_, _ = took(t, l)
			time.Sleep(100 * time.Millisecond)
		}
		const back = `level=INFO msg="neap: Redis answers again" address="" failed=2`
		logged(t, log, lost, back)
		for _, line := range log.all() {
			if strings.Contains(line, "{s}") || strings.Contains(line, "limit:") || strings.Contains(line, "budget") {
				t.Errorf("a key or the text of an error is logged: %s", line)
			}
		}
		// The next outage is told again.
		rdb.by.Store(int64(time.Hour))
		for range 100 {
			_, _ = took(t, l)
		}
		logged(t, log, lost, back, "level=WARN")
	})
}

// TestOneFailureIsNoOutage while other calls are answered.
func TestOneFailureIsNoOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, l, log := outage(t)
		for i := range 100 {
			rdb.by.Store(0)
			if i%2 == 0 {
				rdb.by.Store(int64(time.Hour))
			}
			_, _ = took(t, l)
			time.Sleep(10 * time.Millisecond)
		}
		logged(t, log)
	})
}

// TestAFailureAfterALongRestIsLogged: a service that asks once a minute learns of the
// outage by its first failure.
func TestAFailureAfterALongRestIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, l, log := outage(t)
		_, _ = took(t, l)
		time.Sleep(time.Minute)
		rdb.by.Store(int64(time.Hour))
		_, _ = took(t, l)
		logged(t, log, "level=WARN")
	})
}

// TestACallerWhoGivesUpIsNoOutage, when Redis had less than half the budget.
func TestACallerWhoGivesUpIsNoOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, l, log := outage(t)
		_, _ = took(t, l)
		time.Sleep(time.Minute)
		rdb.by.Store(int64(time.Hour))
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), limit.DefaultBudget/2-time.Millisecond)
			_, _ = l.Take(ctx, "s")
			cancel()
		}
		logged(t, log)
	})
}

// TestTheDefaultLoggerIsTheOneOfThen: slog.SetDefault after Open counts.
func TestTheDefaultLoggerIsTheOneOfThen(t *testing.T) { //nolint:paralleltest // it sets what is global
	synctest.Test(t, func(t *testing.T) {
		var rdb late
		rdb.by.Store(int64(time.Hour))
		l := aLimit(t, storetest.At(t, &rdb, "p"))
		var log lines
		before := slog.Default()
		slog.SetDefault(log.logger())
		defer slog.SetDefault(before)
		_, _ = took(t, l)
		logged(t, &log, "level=WARN")
	})
}
