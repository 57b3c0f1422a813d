package gate_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/nethttp"
)

func ExampleReserve() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
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
