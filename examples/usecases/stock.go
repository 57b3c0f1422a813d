package usecases

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
)

// OpenSale is a deploy's, once.
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

// Sale has each tenant have one of an item, while there are any.
func Sale(rdb script.Client) (gate.Gate, error) {
	sale, err := stock.New(rdb, "sale", nil)
	if err != nil {
		return nil, err
	}
	return gate.Reserve(sale, gate.ByParam("item"), gate.ByValue(tenantKey{}), nil), nil
}

// Sell answers what is so: the unit is sold, or it is not.
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
