package gatetest

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
)

// enter makes a gate of a function.
type enter func(gate.Request) gate.Pass

func (f enter) Enter(q gate.Request) gate.Pass { return f(q) }

// serve is an endpoint.
type serve func(gate.Request) gate.Reply

func (f serve) Serve(q gate.Request) gate.Reply { return f(q) }

// pass is a gate that decides the same for every request.
func pass(p gate.Pass) gate.Gate {
	return enter(func(gate.Request) gate.Pass { return p })
}

// leaves collects the arguments of Leave.
type leaves struct {
	t    testing.TB
	mu   sync.Mutex
	seen []*gate.Reply
	want int
}

// watch returns a collector. When the server of the test is gone, it fails the test
// unless Leave was called as often as expected. So it must be made before the server.
func watch(t testing.TB) *leaves {
	l := &leaves{t: t}
	t.Cleanup(func() {
		if got := len(l.all()); got != l.want {
			t.Errorf("Leave was called %d times, want %d", got, l.want)
		}
	})
	return l
}

// expect sets how often Leave is to be called in all.
func (l *leaves) expect(n int) { l.want = n }

func (l *leaves) leave(r *gate.Reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, r)
}

func (l *leaves) all() []*gate.Reply {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

// await waits until Leave was called n times, and returns the arguments.
func (l *leaves) await(n int) []*gate.Reply {
	l.t.Helper()
	await(l.t, "Leave", func() bool { return len(l.all()) >= n })
	return l.all()
}

// await waits until something holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience()); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("gave up after %v: waited for %s", patience(), what)
		}
	}
}

// next waits for what a gate or a handler reports.
func next[T any](t testing.TB, what string, reports <-chan T) (report T) {
	t.Helper()
	select {
	case report = <-reports:
	case <-time.After(patience()):
		t.Fatalf("gave up after %v: waited for %s", patience(), what)
	}
	return report
}

// seen is a captured reply in the form of a client's answer, so that the two can be
// compared.
func seen(t testing.TB, r *gate.Reply) answer {
	t.Helper()
	if r == nil {
		t.Fatal("Leave was called with nil, want what was sent")
	}
	header := http.Header{}
	for _, f := range r.Header {
		if !f.Add {
			header.Del(f.Name)
		}
		header.Add(f.Name, f.Value)
	}
	return answer{r.Status, header, string(r.Body)}
}

const plain = "text/plain; charset=utf-8"

// say is a handler that answers with a text.
func say(status int, body string) Handler {
	return func(x Exchange) error {
		x.SetHeader("Content-Type", plain)
		return x.Send(status, body)
	}
}

// never is a handler that must not run.
func never(t testing.TB) Handler {
	return func(x Exchange) error {
		t.Error("the handler ran, want it not to run")
		return x.Send(http.StatusInternalServerError, "")
	}
}
