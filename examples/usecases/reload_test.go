package usecases

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

// lines are what was logged.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// TestLimitsKeepWhatWasUsed on Redis and in process: that of a policy which did not change, and that of
// one which is kept.
func TestLimitsKeepWhatWasUsed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "limits")
	if err := os.WriteFile(file, []byte("window 5/1h name total\nwindow 2/1h name few kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	onRedis, err := OpenLimits(unhurried(t), file)
	if err != nil {
		t.Fatal(err)
	}
	inProcess := &Limits{}
	if inProcess.limiter, err = limit.NewLocal("api", *onRedis.now.Load(), nil); err != nil {
		t.Fatal(err)
	}
	inProcess.now.Store(onRedis.now.Load())
	for where, l := range map[string]*Limits{"on Redis": onRedis, "in process": inProcess} {
		ask := serve(l.Gate())
		for i, status := range []int{200, 200, 429} {
			if got := ask("/hello").Code; got != status {
				t.Errorf("%s, request %d: got %d, want %d", where, i, got, status)
			}
		}
		for _, wrong := range []string{"", "# none", "window 9/1h name total; bukket", "window 9/1h name a; window 8/1h name a"} {
			if err := l.Set([]byte(wrong)); err == nil || ask("/hello").Code != 429 {
				t.Errorf("%s, %q: got %v, want an error, and the limits as they were", where, wrong, err)
			}
		}
		if err := l.Set([]byte("window 5/1h name total; window 100/1h name few kept")); err != nil {
			t.Fatal(err)
		}
		for i, status := range []int{200, 200, 200, 429} { // 2 of 5 were used before
			if got := ask("/hello").Code; got != status {
				t.Errorf("%s, request %d under the new limits: got %d, want %d", where, i, got, status)
			}
		}
		if err := l.Set([]byte("window 6/1h name total; window 6/1h name few kept")); err != nil {
			t.Fatal(err)
		}
		if got := ask("/hello"); got.Code != 200 || !strings.Contains(got.Header().Get("RateLimit"), `"few";r=0`) {
			t.Errorf("%s, other numbers: got %d and %v, want a fresh total, and 6 of few used", where, got.Code, got.Header())
		}
	}
	for _, wrong := range []string{filepath.Join(t.TempDir(), "none"), file} {
		if err := os.WriteFile(file, []byte("bukket"), 0o600); err != nil {
			t.Fatal(err)
		}
		if l, err := OpenLimits(unhurried(t), wrong); l != nil || err == nil {
			t.Errorf("%s: got %v, %v, want an error", wrong, l, err)
		}
	}
}

func TestLimitsAreWatched(t *testing.T) { //nolint:paralleltest // it replaces slog.Default
	var logged lines
	defer redistest.DefaultLog(t, slog.NewTextHandler(&logged, nil))()
	file := filepath.Join(t.TempDir(), "limits")
	write := func(text string) {
		t.Helper()
		next := file + ".next"
		if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, file); err != nil {
			t.Fatal(err)
		}
	}
	write("window 1/1h")
	l, err := OpenLimits(unhurried(t), file)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.Watch(ctx, file, time.Millisecond)
	}()
	now := func(text string) func() bool {
		return func() bool { return l.now.Load().String() == text }
	}
	write("window 2/1h")
	redistest.Await(t, 20*time.Second, "the new limits", now("window 2/1h"))
	write("bukket 1/1h")
	redistest.Await(t, 20*time.Second, "a line about the fault", func() bool { return logged.has("is no kind of policy") })
	if !now("window 2/1h")() {
		t.Errorf("got %v, want the limits as they were", l.now.Load())
	}
	write("window 3/1h")
	redistest.Await(t, 20*time.Second, "the mended limits", now("window 3/1h"))
	cancel()
	<-ended
}
