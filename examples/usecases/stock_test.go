package usecases

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/gatefake"
	"github.com/neap-go/neap/nethttp"
)

// selling serves Sell behind the gate of Sale, in which there are no phones yet.
func selling(t *testing.T) (sale *stock.Stock, open func(), ask func(tenant string) int) {
	t.Helper()
	rdb := gatefake.Redis(t)
	sale, err := stock.New(rdb, "sale", nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Sale(rdb)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /flash/{item}", nethttp.Middleware(g)(http.HandlerFunc(Sell)))
	open = func() {
		if err := OpenSale(t.Context(), rdb, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	return sale, open, func(tenant string) int {
		r := httptest.NewRequest("POST", "/flash/phone", nil)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tenantKey{}, Tenant{ID: tenant})))
		return w.Code
	}
}

func TestSale(t *testing.T) {
	t.Parallel()
	sale, open, ask := selling(t)
	if got := ask("a"); got != 404 {
		t.Errorf("before it is open: got %d, want 404", got)
	}
	open()
	for i, want := range []int{201, 409, 409} {
		if got := ask("a"); got != want {
			t.Errorf("request %d: got %d, want %d", i, got, want)
		}
	}
	open() // changes nothing
	if l, err := sale.Left(t.Context(), "phone"); err != nil || l.Left != 99 || l.Sold != 1 {
		t.Errorf("got %+v, %v, want 99 left and 1 sold", l, err)
	}
}

// A buyer who lost the unit while being served is told so.
func TestSellWhatIsGone(t *testing.T) {
	t.Parallel()
	sale, open, _ := selling(t)
	open()
	all := &stock.ReserveOptions{Quantity: 100}
	own, err := sale.Reserve(t.Context(), "phone", "a", "1", all)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := sale.Resume("phone", "a", "1", all)
	if err != nil {
		t.Fatal(err)
	}
	if err := taken.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	sell := func(ctx context.Context) int {
		w := httptest.NewRecorder()
		Sell(w, httptest.NewRequest("POST", "/flash/phone", nil).WithContext(ctx))
		return w.Code
	}
	if _, err := sale.Reserve(t.Context(), "phone", "b", "2", &stock.ReserveOptions{Confirm: true}); err != nil {
		t.Fatal(err)
	}
	if got := sell(stock.NewContext(t.Context(), own)); got != 409 {
		t.Errorf("Sell of a unit that is gone: got %d, want 409", got)
	}
	if got := sell(t.Context()); got != 500 {
		t.Errorf("without a gate: got %d, want 500", got)
	}
}
