package limit

import (
	"sync/atomic"

	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/core/limit/internal/wire"
)

// request is a request of a limiter, and what Refund and Settle need of it.
type request struct {
	kind.Request

	of         *Limiter
	at         int64 // when it was decided, by the local clock; for local decisions
	open       bool  // admitted by store.FailOpen
	denied     bool
	local      bool
	conclusion atomic.Pointer[conclusion] // nil while it is unspent
	kept       *wire.Renewals             // nil if it has no estimates
}

// newRequest returns a request with its readings, in one piece of memory unless there are
// many.
func newRequest(subject string, cost int64, rules int) *request {
	var q *request
	switch {
	case rules == 1:
		one := new(struct {
			request

			room [1]kind.Reading
		})
		q, one.Readings = &one.request, one.room[:]
	case rules <= kind.Few:
		few := new(struct {
			request

			room [kind.Few]kind.Reading
		})
		q, few.Readings = &few.request, few.room[:rules]
	default:
		q = &request{Request: kind.Request{Readings: make([]kind.Reading, rules)}}
	}
	q.Subject, q.Cost = subject, cost
	return q
}
