package nethttp_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/storetest"
	"github.com/neap-go/neap/nethttp"
)

func ExampleNewTransport() {
	partner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer partner.Close()
	limiter, err := limit.New(storetest.Embedded(), "partner", []limit.Policy{
		limit.TokenBucket{Rate: 90, Per: time.Minute, Burst: 5},
	}, &limit.Options{Holds: true})
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: nethttp.NewTransport(nil, limiter, nil, nil)}
	for range 2 {
		answer, err := client.Get(partner.URL)
		if denied, is := errors.AsType[*limit.LimitedError](err); is {
			fmt.Println("not sent: try again in", denied.RetryAfter.Round(time.Second))
			continue
		}
		if err != nil {
			panic(err)
		}
		fmt.Println(answer.StatusCode)
		answer.Body.Close()
	}
	// Output:
	// 429
	// not sent: try again in 1m0s
}

func ExampleTold() {
	answer := &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"30"}}}
	fmt.Println(nethttp.Told(answer))
	// Output: 30s
}

func ExampleToldAlsoBy() {
	answer := &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {"30"}}}
	fmt.Println(nethttp.Told(answer), nethttp.ToldAlsoBy(503)(answer))
	// Output: 0s 30s
}

func ExampleToldByReset() {
	answer := &http.Response{StatusCode: 200, Header: http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"30"}}}
	fmt.Println(nethttp.ToldByReset()(answer))
	// Output: 30s
}
