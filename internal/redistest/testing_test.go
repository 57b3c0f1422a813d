package redistest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

// recorder is a testing.TB that keeps what a test would fail with.
type recorder struct {
	testing.TB
	mu      sync.Mutex
	said    string
	cleanup []func()
}

func (r *recorder) say(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said += text + "\n"
}

type stop struct{}

func (r *recorder) Helper()                           {}
func (r *recorder) Errorf(format string, args ...any) { r.say(fmt.Sprintf(format, args...)) }
func (r *recorder) Fatal(args ...any)                 { r.say(fmt.Sprint(args...)); panic(stop{}) }
func (r *recorder) Fatalf(format string, args ...any) {
	r.say(fmt.Sprintf(format, args...))
	panic(stop{})
}
func (r *recorder) Cleanup(f func()) { r.cleanup = append(r.cleanup, f) }

// fatal is what f, with its cleanup, fails a test with; "" when it passes.
func fatal(t *testing.T, f func(testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	func() {
		defer func() {
			if v := recover(); v != nil {
				if _, ok := v.(stop); !ok {
					panic(v)
				}
			}
		}()
		f(r)
	}()
	for _, f := range slices.Backward(r.cleanup) {
		f()
	}
	return r.said
}

// show spells values out with their types.
func show(v, err any) string { return fmt.Sprintf("%T %v, %T %v", v, v, err, err) }
