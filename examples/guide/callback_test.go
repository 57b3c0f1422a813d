package guide

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/storetest"
	"github.com/neap-go/neap/nethttp"
)

func TestTwoDeliveriesAtOnce(t *testing.T) {
	t.Parallel()
	pitfall[int]{
		asks: "how often a payment is booked that is delivered to two processes at once",
		usual: func(s scene) int {
			s.rdb.AddHook(&meeting{at: "exists", of: 2})
			var booked atomic.Int64
			s.together(2, func() (bool, error) {
				return true, BookIfNew(s.Context(), s.rdb, s.key, once(&booked))
			})
			return int(booked.Load())
		},
		breaks: 2,
		neap: func(s scene) int {
			var booked atomic.Int64
			deliver := s.endpoint(once(&booked))
			s.together(2, func() (bool, error) { return deliver() == "done", nil })
			return int(booked.Load())
		},
		holds: 1,
	}.run(t)
}

func TestMarkedBeforeItIsDone(t *testing.T) {
	t.Parallel()
	pitfall[int]{
		asks: "how often a payment is booked that is delivered three times, if the first booking failed",
		usual: func(s scene) int {
			var booked atomic.Int64
			book := failingFirst(&booked)
			for range 3 {
				_ = BookMarked(s.Context(), s.rdb, s.key, book) // an error is answered with 503
			}
			return int(booked.Load())
		},
		breaks: 0,
		neap: func(s scene) int {
			var booked atomic.Int64
			deliver := s.endpoint(failingFirst(&booked))
			for range 3 {
				deliver()
			}
			return int(booked.Load())
		},
		holds: 1,
	}.run(t)
}

func TestAcknowledgedTooEarly(t *testing.T) {
	t.Parallel()
	pitfall[string]{
		asks: "what a delivery is told while another one of the same event is in progress",
		usual: func(s scene) string {
			return duringTheFirst(func(book func() error) string {
				if err := BookMarked(s.Context(), s.rdb, s.key, book); err != nil {
					return "later"
				}
				return "done"
			})
		},
		breaks: "done",
		neap: func(s scene) string {
			var book atomic.Value
			deliver := s.endpoint(func() error { return book.Load().(func() error)() })
			return duringTheFirst(func(by func() error) string {
				book.CompareAndSwap(nil, by)
				return deliver()
			})
		},
		holds: "later",
	}.run(t)
}

func once(booked *atomic.Int64) func() error {
	return func() error {
		booked.Add(1)
		return nil
	}
}

// failingFirst fails the first time, since the database is away, and books from then
// on.
func failingFirst(booked *atomic.Int64) func() error {
	var tried atomic.Bool
	return func() error {
		if !tried.Swap(true) {
			return errors.New("no connection")
		}
		booked.Add(1)
		return nil
	}
}

// duringTheFirst delivers a second time while the first delivery is being booked,
// which then fails. It returns the answer to the second.
func duringTheFirst(deliver func(book func() error) string) (second string) {
	began, answered, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	slow := func() error {
		close(began)
		<-answered
		return errors.New("no connection")
	}
	go func() {
		defer close(ended)
		deliver(slow)
	}()
	<-began
	second = deliver(slow)
	close(answered)
	<-ended
	return second
}

// endpoint makes neap's endpoint. Each call of deliver sends it the same event of
// Stripe.
func (s scene) endpoint(book func() error) (deliver func() string) {
	s.Helper()
	guard, err := idempotency.New(storetest.At(s, s.rdb, s.key), "callbacks", idempotency.Retry{}, &idempotency.Options{
		Retention: fourDays, Budget: patience,
	})
	s.must(err)
	verify := func(_ context.Context, d *callback.Delivery) ([]byte, error) { return d.Body, nil }
	endpoint, err := Booking(guard, verify, book)
	s.must(err)
	handler := nethttp.Handler(endpoint)
	return func() string {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("POST", "/callbacks/stripe",
			strings.NewReader(`{"id": "evt_17", "type": "charge.succeeded", "data": {"object": {"id": "ch_17"}}}`)))
		if w.Code == http.StatusOK {
			return "done"
		}
		return "later"
	}
}
