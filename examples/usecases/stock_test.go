package usecases

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/neap-go/neap/core/callback"
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

// table is a shop's orders, and those that were refunded.
type table struct {
	orders   map[string]Order
	refunded []string
	away     error
}

func (o *table) Add(_ context.Context, order Order) error {
	if o.away == nil {
		o.orders[order.Number] = order
	}
	return o.away
}

func (o *table) Find(_ context.Context, number string) (Order, error) {
	order, ok := o.orders[number]
	if !ok {
		return Order{}, errors.New("there is no such order")
	}
	return order, nil
}

func (o *table) Refund(_ context.Context, order Order) error {
	o.refunded = append(o.refunded, order.Buyer)
	return nil
}

// A unit is held until it is paid. An event of a payment that was not made sells nothing. A
// payment that comes when its hold has ended and another has the unit is refunded.
func TestSaleOnAccount(t *testing.T) {
	t.Parallel()
	rdb := gatefake.Redis(t)
	if err := OpenSale(t.Context(), rdb, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	sale, hold, err := SaleOnAccount(rdb)
	if err != nil {
		t.Fatal(err)
	}
	orders := &table{orders: map[string]Order{}}
	mux := http.NewServeMux()
	mux.Handle("POST /flash/{item}", nethttp.Middleware(hold)(PlaceOrder(orders)))
	ask := func(tenant string) (int, string) {
		r := httptest.NewRequest("POST", "/flash/phone", nil)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tenantKey{}, Tenant{ID: tenant})))
		var placed struct{ Order string }
		_ = json.Unmarshal(w.Body.Bytes(), &placed)
		return w.Code, placed.Order
	}
	has := func(left, held, sold int64) {
		t.Helper()
		if l, err := sale.Left(t.Context(), "phone"); err != nil || l.Left != left || l.Held != held || l.Sold != sold {
			t.Errorf("got %+v, %v, want %d left, %d held and %d sold", l, err, left, held, sold)
		}
	}
	settle := Paid(sale, orders, func(e *callback.Event) bool { return string(e.Payload) == "paid" })
	told := func(number, status string) error {
		return settle(t.Context(), &callback.Event{Item: callback.Item{Order: number, Payload: []byte(status)}})
	}
	paid := func(number string) error { return told(number, "paid") }

	orders.away = errors.New("no database")
	if status, _ := ask("ann"); status != 503 {
		t.Errorf("without a database: got %d, want 503", status)
	}
	has(100, 0, 0)
	orders.away = nil
	_, anns := ask("ann")
	status, bobs := ask("bob")
	if again, _ := ask("bob"); status != 202 || bobs == "" || again != 409 {
		t.Errorf("got %d with the order %q, and then %d, want 202 with an order, and 409", status, bobs, again)
	}
	has(98, 2, 0)
	if err := told(anns, "awaited"); err != nil {
		t.Errorf("a payment that is awaited: got %v, want no error", err)
	}
	has(98, 2, 0)
	if err := errors.Join(paid(anns), paid(anns)); err != nil {
		t.Error(err)
	}
	has(98, 1, 1)

	// As if bob's hold had ended, and others had come.
	own, err := sale.Resume("phone", orders.orders[bobs].Buyer, orders.orders[bobs].ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := own.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := sale.Reserve(t.Context(), "phone", "cid", "1", &stock.ReserveOptions{Quantity: 99, Confirm: true}); err != nil {
		t.Fatal(err)
	}
	if err := paid(bobs); err != nil || len(orders.refunded) != 1 || orders.refunded[0] != orders.orders[bobs].Buyer {
		t.Errorf("a payment that is too late: got %v and the refunds %q, want one of bob's", err, orders.refunded)
	}
	if err := paid("17"); err == nil {
		t.Error("a payment of no order: got no error, want one")
	}
	has(0, 0, 100)
	w := httptest.NewRecorder()
	if PlaceOrder(orders)(w, httptest.NewRequest("POST", "/flash/phone", nil)); w.Code != 500 {
		t.Errorf("without a gate: got %d, want 500", w.Code)
	}
}
