package guide

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// pitfall asks the usual form and neap's the same thing of the same server. The
// usual one has to break as its chapter says, and neap's has to hold.
type pitfall[T comparable] struct {
	asks   string
	usual  func(scene) T
	breaks T
	neap   func(scene) T
	holds  T
}

// scene is what one of the two forms is given.
type scene struct {
	*testing.T
	rdb   redis.UniversalClient
	admin redis.UniversalClient // who may do everything; the usual form needs it as its rdb
	key   string                // that nobody else uses
}

// run asks on miniredis and on a server, or on the targets that are named.
func (p pitfall[T]) run(t *testing.T, on ...redistest.Target) {
	t.Helper()
	if len(on) == 0 {
		on = []redistest.Target{redistest.OnMiniredis, redistest.OnStandalone}
	}
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, key string) {
		p.sideBySide(t, rdb, admin, key)
	}, on...)
}

// alone asks on a server that no other test uses.
func (p pitfall[T]) alone(t *testing.T, args ...string) {
	t.Helper()
	srv := redistest.NewStandalone(t, args...)
	p.sideBySide(t, srv.Client(t), srv.Admin(t), srv.Prefix(t))
}

// sideBySide gives neap's form the key that must not outlive the test.
func (p pitfall[T]) sideBySide(t *testing.T, rdb, admin redis.UniversalClient, key string) {
	t.Helper()
	t.Run("usual", func(t *testing.T) {
		if got := p.usual(scene{t, admin, admin, redistest.Prefix(t)}); got != p.breaks {
			t.Errorf("%s: %v; the chapter says %v", p.asks, got, p.breaks)
		}
	})
	t.Run("neap", func(t *testing.T) {
		if got := p.neap(scene{t, rdb, admin, key}); got != p.holds {
			t.Errorf("%s: %v; the chapter says %v", p.asks, got, p.holds)
		}
	})
}

// patience is a budget for machines that are busy with other tests.
const patience = 10 * time.Second

// must ends the test where a call fails that has nothing to do with the pitfall.
func (s scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// said is the text of an error, or nothing.
func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
