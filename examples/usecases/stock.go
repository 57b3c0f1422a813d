package usecases

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
)

// OpenSale opens the item. A deploy runs it once.
func OpenSale(ctx context.Context, rdb script.Client, ends time.Time) error {
	phones, err := stock.New(rdb, "sale", nil)
	if err != nil {
		return err
	}
	if _, err := phones.Open(ctx, "phone", 100, ends); err != nil {
		return err
	}
	return nil
}

// Sale gives each tenant one unit of an item, while there are any.
func Sale(rdb script.Client) (gate.Gate, error) {
	sale, err := stock.New(rdb, "sale", nil)
	if err != nil {
		return nil, err
	}
	return gate.Reserve(sale, gate.ByParam("item"), gate.ByValue("tenant", tenantKey{}), nil), nil
}

// Sell confirms the sale before it answers, so the answer is true.
func Sell(w http.ResponseWriter, r *http.Request) {
	own, ok := stock.FromContext(r.Context())
	if !ok {
		http.Error(w, "not reserved", http.StatusInternalServerError)
		return
	}
	switch err := own.Confirm(r.Context()); {
	case errors.Is(err, stock.ErrLapsed):
		http.Error(w, "sold out", http.StatusConflict) // and undo what was done
	case err != nil:
		http.Error(w, "try again", http.StatusServiceUnavailable) // the gate cancels
	default:
		w.WriteHeader(http.StatusCreated)
	}
}

// payWithin is how long a buyer has to pay.
const payWithin = 15 * time.Minute

// SaleOnAccount holds a unit until it is paid.
func SaleOnAccount(rdb script.Client) (*stock.Stock, gate.Gate, error) {
	sale, err := stock.New(rdb, "sale", &stock.Options{Lease: payWithin + time.Minute}) // a callback takes a while
	if err != nil {
		return nil, nil, err
	}
	hold := gate.Reserve(sale, gate.ByParam("item"), gate.ByValue("tenant", tenantKey{}), &gate.ReserveOptions{Keep: true})
	return sale, hold, nil
}

// Order is a row of a shop's database: an order for one unit. The payment provider gets
// its number.
type Order struct {
	Number          string
	Item, Buyer, ID string // of the reservation
	PayUntil        time.Time
}

// OrderTable is the table of a shop's orders, in its database.
type OrderTable interface {
	Add(context.Context, Order) error
	Find(ctx context.Context, number string) (Order, error)
	Refund(context.Context, Order) error // once, however often it is called
}

// PlaceOrder stores the order, and answers with its number and until when to pay.
func PlaceOrder(orders OrderTable) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		own, ok := stock.FromContext(r.Context())
		if !ok {
			http.Error(w, "not reserved", http.StatusInternalServerError)
			return
		}
		order := Order{rand.Text(), own.Item(), own.Buyer(), own.ID(), time.Now().Add(payWithin)}
		if err := orders.Add(r.Context(), order); err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable) // the unit is back
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_ = json.NewEncoder(w).Encode(map[string]any{"order": order.Number, "pay_until": order.PayUntil})
	}
}

// Paid handles the callbacks of payments. succeeded says whether an event is a payment that
// was made: neither one that has failed, is awaited or was closed, nor a refund.
func Paid(sale *stock.Stock, orders OrderTable, succeeded func(*callback.Event) bool) callback.Handler {
	return func(ctx context.Context, e *callback.Event) error {
		if !succeeded(e) {
			return nil // the unit is back when the lease ends
		}
		order, err := orders.Find(ctx, e.Order)
		if err != nil {
			return err
		}
		own, err := sale.Resume(order.Item, order.Buyer, order.ID, nil)
		if err != nil {
			return err
		}
		err = own.Confirm(ctx)
		if errors.Is(err, stock.ErrLapsed) { // too late, and all are sold
			return orders.Refund(ctx, order)
		}
		return err // if it is not nil, the provider sends the event again
	}
}
