package background

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// client panics in Process.
type client struct{ value any }

func (c client) Process(context.Context, redis.Cmder) error { panic(c.value) }

func TestTry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		f    func() error
		want error
	}{
		"an error":            {func() error { return io.EOF }, io.EOF},
		"no error":            {func() error { return nil }, nil},
		"a panic":             {func() error { panic(io.ErrClosedPipe) }, io.ErrClosedPipe},
		"an end":              {func() error { runtime.Goexit(); return nil }, ErrEnded},
		"a panic of a client": {func() error { return Process(t.Context(), client{io.ErrNoProgress}, nil) }, io.ErrNoProgress},
		"a panic with no error": {func() error {
			err := Process(t.Context(), client{"text"}, nil)
			if !strings.Contains(err.Error(), "text") {
				return err
			}
			return io.EOF
		}, io.EOF},
	} {
		if err := Try(c.f); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

// TestGoroutinesAndTimersThatPanic do not end the process.
func TestGoroutinesAndTimersThatPanic(t *testing.T) {
	t.Parallel()
	done := make(chan string, 3)
	boom := func(name string) func() {
		return func() {
			defer func() { done <- name }()
			panic(name)
		}
	}
	Go(boom("Go"))
	AfterFunc(0, boom("AfterFunc"))
	ctx, cancel := context.WithCancel(t.Context())
	OnDone(ctx, boom("OnDone"))
	cancel()
	for range 3 {
		<-done
	}
}

// TestAPanicIsLoggedOnce, with its stack, and without its value.
func TestAPanicIsLoggedOnce(t *testing.T) { //nolint:paralleltest // it replaces slog.Default
	var text strings.Builder
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	defer slog.SetDefault(before)
	logged.Store(0)
	for range 3 {
		_ = Process(t.Context(), client{"neap:a-key"}, nil)
	}
	got := text.String()
	if strings.Count(got, "\n") != 1 || !strings.Contains(got, "background_test.go") || strings.Contains(got, "a-key") {
		t.Errorf("the log of three panics: got %q, want one line with the stack and without the value", got)
	}
	logged.Store(int64(time.Since(began)) - 2*logPause)
	_ = Process(t.Context(), client{"neap:a-key"}, nil)
	if n := strings.Count(text.String(), "\n"); n != 2 {
		t.Errorf("a panic minutes later: got %d lines in all, want 2", n)
	}
}

// TestRecoverAllocatesNothing where nothing panics: it is on the way of each call.
func TestRecoverAllocatesNothing(t *testing.T) { //nolint:paralleltest // it counts allocations
	var calls atomic.Int64
	by := counting{&calls}
	if n := testing.AllocsPerRun(100, func() { _ = Process(t.Context(), by, nil) }); n > 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

type counting struct{ calls *atomic.Int64 }

func (c counting) Process(context.Context, redis.Cmder) error {
	c.calls.Add(1)
	return nil
}
