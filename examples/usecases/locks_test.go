package usecases

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"expvar"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/gatefake"
	"github.com/neap-go/neap/nethttp"
)

func locker(t *testing.T) *lock.Locker {
	t.Helper()
	l, err := lock.New(gatefake.Redis(t), "orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// ledger is a database of one order, which does what the statement of Pay says.
type ledger struct {
	t     *testing.T
	mu    sync.Mutex
	fence int64
}

func (l *ledger) Connect(context.Context) (driver.Conn, error) { return conn{l: l}, nil }
func (l *ledger) Driver() driver.Driver                        { return nil }
func (c conn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	fence := args[0].Value.(int64)
	if !strings.HasSuffix(query, "fence = $1 WHERE id = $2 AND fence < $1") || args[1].Value != "17" {
		c.l.t.Errorf("got %s with %v, want an update of order 17 that compares fences", query, args)
	}
	if c.l.fence >= fence {
		return driver.RowsAffected(0), nil
	}
	c.l.fence = fence
	return driver.RowsAffected(1), nil
}

type conn struct {
	driver.Conn
	l *ledger
}

func (conn) Close() error { return nil }

// Each request runs alone and writes with a larger fence than the one before;
// one whose lock was forced open is refused by the database.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	g, err := OneAtATime(gatefake.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(&ledger{t: t})
	t.Cleanup(func() { _ = db.Close() })
	mux := http.NewServeMux()
	ask := func(path string) int {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("POST", path, nil))
		return w.Code
	}
	mux.Handle("POST /orders/{order}/pay", nethttp.Middleware(g)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := ask(r.URL.Path); got != 409 {
			t.Errorf("another beside it: got %d, want 409", got)
		}
		if err := Pay(r.Context(), db, r.PathValue("order")); err != nil {
			t.Error(err)
		}
	})))
	for range 3 {
		if got := ask("/orders/17/pay"); got != 200 {
			t.Errorf("got %d, want 200", got)
		}
	}
}

func TestPay(t *testing.T) {
	t.Parallel()
	db := sql.OpenDB(&ledger{t: t})
	t.Cleanup(func() { _ = db.Close() })
	if err := Pay(t.Context(), db, "17"); err == nil {
		t.Error("Pay without a lock: got no error, want one")
	}
	l := locker(t)
	first, err := l.Try(t.Context(), "param:order=17")
	if err != nil {
		t.Fatal(err)
	}
	if err := OpenByForce(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	second, err := l.Try(t.Context(), "param:order=17")
	if err != nil {
		t.Fatal(err)
	}
	if err := Pay(second.Context(), db, "17"); err != nil {
		t.Error(err)
	}
	if err := Pay(first.Context(), db, "17"); !errors.Is(err, errOvertaken) {
		t.Errorf("Pay with a lock that was lost: got %v, want %v", err, errOvertaken)
	}
	if err := OpenByForce(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if err := OpenByForce(t.Context(), l); err != nil {
		t.Errorf("OpenByForce of a lock that is free: got %v, want no error", err)
	}
}

func TestPublishLocks(t *testing.T) {
	t.Parallel()
	l := locker(t)
	PublishLocks(l)
	if _, err := l.Try(t.Context(), "key"); err != nil {
		t.Fatal(err)
	}
	if got := expvar.Get("lock.orders").String(); !strings.Contains(got, `"Holding":1`) {
		t.Errorf("got %s, want 1 holding", got)
	}
}
