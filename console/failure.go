package console

import (
	"context"
	"errors"
	"net/http"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
)

// failure names an error to the page, which has words for each name. It is not the error's text, which may have keys.
type failure struct {
	Error string `json:"error"`
}

// failures are the errors that the page has words for.
var failures = []struct {
	err    error
	name   string
	status int
}{
	{limit.ErrSubject, "empty", http.StatusBadRequest},
	{inflight.ErrSubject, "empty", http.StatusBadRequest},
	{limit.ErrNoBan, "unknown action", http.StatusNotFound}, // the page offers no ban then
	{lock.ErrKey, "empty", http.StatusBadRequest},
	{idempotency.ErrKey, "empty", http.StatusBadRequest},
	{stock.ErrItem, "empty", http.StatusBadRequest},
	{stock.ErrID, "id", http.StatusBadRequest},
	{stock.ErrUnits, "units", http.StatusBadRequest},
	{stock.ErrQuantity, "quantity", http.StatusConflict},
	{stock.ErrUnknown, "unknown item", http.StatusConflict},
	{stock.ErrDisagrees, "disagrees", http.StatusConflict},
	{idempotency.ErrInFlight, "in flight", http.StatusConflict},
	{idempotency.ErrNotInDoubt, "not in doubt", http.StatusConflict},
	{errChanged, "changed", http.StatusConflict},
	{script.ErrNotExecuted, "not executed", http.StatusServiceUnavailable},
	{script.ErrMaybeExecuted, "maybe executed", http.StatusServiceUnavailable},
	{script.ErrConfiguration, "configuration", http.StatusServiceUnavailable},
	{context.Canceled, "canceled", http.StatusServiceUnavailable},
	{context.DeadlineExceeded, "canceled", http.StatusServiceUnavailable},
}

func refuse(w http.ResponseWriter, err error) {
	name, status := nameOfError(err)
	answer(w, status, failure{name})
}

// nameOfError is the name of an error, and the status of an answer that has it.
func nameOfError(err error) (name string, status int) {
	for _, f := range failures {
		if errors.Is(err, f.err) {
			return f.name, f.status
		}
	}
	return "failed", http.StatusInternalServerError
}
