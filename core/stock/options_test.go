package stock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/stock"
)

// defaultLease is what the documentation of Options tells.
const defaultLease = 30 * time.Second

func TestFaultsOfOptions(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { rdb.Close() })
	_, err := stock.New(rdb, "a name", &stock.Options{
		Budget: -1, Lease: 24*time.Hour + 1,
	})
	for _, part := range []string{"stock.New: ", "name is", "Budget is", "Lease is"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got the error %v, want %q in it", err, part)
		}
	}
	for _, lease := range []time.Duration{50 * time.Millisecond, 24 * time.Hour, 0} {
		s, err := stock.New(rdb, "name", &stock.Options{Lease: lease})
		if err != nil || s.Name() != "name" {
			t.Fatalf("a lease of %v: got %v, want a stock of the name \"name\"", lease, err)
		}
		if want := max(lease, 50*time.Millisecond); lease != 0 && s.Lease() != want || lease == 0 && s.Lease() != defaultLease {
			t.Errorf("a lease of %v: got %v, want it as it is, or %v for 0", lease, s.Lease(), defaultLease)
		}
	}
}

func TestFaultsOfCalls(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // nothing is sent
	t.Cleanup(func() { rdb.Close() })
	s := newStock(t, rdb, "neap", nil)
	ctx, soon := t.Context(), time.Now().Add(time.Hour)
	open := func(item string, units int64, until time.Time) error {
		_, err := s.Open(ctx, item, units, until)
		return err
	}
	reserve := func(item, buyer, id string, n int64) error {
		opts := &stock.ReserveOptions{Quantity: n}
		_, err := s.Reserve(ctx, item, buyer, id, opts)
		if _, again := s.Resume(item, buyer, id, opts); !errors.Is(again, err) {
			t.Errorf("Resume: got %v, want %v as of Reserve", again, err)
		}
		return err
	}
	_, left := s.Left(ctx, "")
	_, forget := s.Forget(ctx, "")
	var buyers error
	for _, err := range s.Buyers(ctx, "") {
		buyers = err
	}
	for name, c := range map[string]struct{ err, want error }{
		"Open, item":     {open("", 1, soon), stock.ErrItem},
		"Open, units":    {open("a", 0, soon), stock.ErrUnits},
		"Open, too many": {open("a", stock.MaxUnits+1, soon), stock.ErrUnits},
		"Open, far away": {open("a", 1, soon.AddDate(1000, 0, 0)), stock.ErrUntil},
		"Reserve, item":  {reserve("", "b", "c", 1), stock.ErrItem},
		"Reserve, buyer": {reserve("a", "", "c", 1), stock.ErrBuyer},
		"Reserve, id":    {reserve("a", "b", "", 1), stock.ErrID},
		"Reserve, none":  {reserve("a", "b", "c", -1), stock.ErrUnits},
		"Reserve, many":  {reserve("a", "b", "c", stock.MaxUnits+1), stock.ErrUnits},
		"Restock, item":  {s.Restock(ctx, "", "b", 1), stock.ErrItem},
		"Restock, id":    {s.Restock(ctx, "a", "", 1), stock.ErrID},
		"Restock, units": {s.Restock(ctx, "a", "b", 0), stock.ErrUnits},
		"Left, item":     {left, stock.ErrItem},
		"Forget, item":   {forget, stock.ErrItem},
		"Buyers, item":   {buyers, stock.ErrItem},
		"Reserve of none": {func() error {
			done, end := context.WithCancel(ctx)
			end()
			_, err := s.Reserve(done, "a", "b", "c", nil)
			return err
		}(), context.Canceled},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.err, c.want)
		}
	}
}
