package gate_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
	"github.com/neap-go/neap/nethttp"
)

func ExampleReserve() {
	rdb := storetest.Embedded() // stands for your go-redis client
	sale, err := stock.New(rdb, "sale", nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := sale.Open(context.Background(), "phone", 1, time.Now().Add(time.Hour)); err != nil {
		log.Fatal(err)
	}
	one := nethttp.Middleware(gate.Reserve(sale, gate.ByParam("item"), gate.ByHeader("X-Buyer"), nil))
	mux := http.NewServeMux()
	mux.Handle("POST /flash/{item}", one(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Card") == "" {
			http.Error(w, "not paid", http.StatusPaymentRequired) // the unit is back
			return
		}
		w.WriteHeader(http.StatusCreated)
	})))
	for _, who := range [][2]string{{"ann", ""}, {"bob", "4242"}, {"ann", "4000"}} {
		r := httptest.NewRequest("POST", "/flash/phone", nil)
		r.Header.Set("X-Buyer", who[0])
		r.Header.Set("X-Card", who[1])
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(who[0], w.Code)
	}
	// Output:
	// ann 402
	// bob 201
	// ann 409
}

// A unit is held for a quarter of an hour and a little longer, since a callback takes a
// while. It is sold when the payment's callback comes.
func ExampleReserve_keep() {
	ctx := context.Background()
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	rdb := redistest.Unhurried(&redis.Options{Addr: server.Addr()}) // stands for your go-redis client
	sale, err := stock.New(rdb, "sale", &stock.Options{Lease: 16 * time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := sale.Open(ctx, "phone", 1, time.Now().Add(time.Hour)); err != nil {
		log.Fatal(err)
	}
	orders := map[string]*stock.Reservation{} // a shop's database has item, buyer, id and quantity
	hold := nethttp.Middleware(gate.Reserve(sale, gate.ByParam("item"), gate.ByHeader("X-Buyer"), &gate.ReserveOptions{Keep: true}))
	mux := http.NewServeMux()
	mux.Handle("POST /flash/{item}", hold(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own, ok := stock.FromContext(r.Context())
		if !ok {
			http.Error(w, "not reserved", http.StatusInternalServerError)
			return
		}
		orders["order of "+r.Header.Get("X-Buyer")] = own
		w.WriteHeader(http.StatusAccepted) // with the order's number, and until when to pay
	})))
	buy := func(buyer string) {
		r := httptest.NewRequest("POST", "/flash/phone", nil)
		r.Header.Set("X-Buyer", buyer)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(buyer, w.Code)
	}
	paid := func(number string) { // a callback's handler, in any process, if the event is a payment that was made
		order := orders[number]
		own, err := sale.Resume(order.Item(), order.Buyer(), order.ID(), nil)
		if err != nil {
			log.Fatal(err)
		}
		switch err := own.Confirm(ctx); {
		case errors.Is(err, stock.ErrLapsed):
			fmt.Println(number, "is too late: refund it")
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println(number, "is sold")
		}
	}

	buy("ann")
	buy("bob")
	server.SetTime(time.Now().Add(17 * time.Minute)) // ann has not paid
	buy("bob")
	paid("order of bob")
	paid("order of ann")
	// Output:
	// ann 202
	// bob 409
	// bob 202
	// order of bob is sold
	// order of ann is too late: refund it
}
