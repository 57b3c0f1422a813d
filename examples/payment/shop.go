package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/nethttp"
)

// price is what each order costs, and refunds are what the shop has asked to be
// given back of it, the first and the second time.
const price = 1000

var refunds = []int64{300, 200}

// refund finds one by the shop's own number of it. A shop looks into its database.
func refund(number string) (int64, error) {
	for i, amount := range refunds {
		if strings.HasSuffix(number, fmt.Sprint("-", i+1)) {
			return amount, nil
		}
	}
	return 0, errors.New("the shop has not asked for this refund")
}

// orderOf finds an order by Square's id of its payment, as in a shop's database.
func orderOf(payment string) string {
	return strings.TrimSuffix(strings.TrimPrefix(payment, "payment-"), "-0")
}

// shop is one process of it.
type shop struct {
	ledger ledger
	stage  stage
}

// serve is what each process of the shop does.
func serve(ctx context.Context, url, file, key string, lease time.Duration) error {
	published, err := os.ReadFile(key)
	if err != nil {
		return err
	}
	opts, err := redis.ParseURL(url)
	if err != nil { // its text repeats the password
		return errors.New("-serve is not the URL of a Redis")
	}
	opts.ContextTimeoutEnabled = true
	guard, err := idempotency.New(redis.NewClient(opts), "callbacks", idempotency.Retry{}, &idempotency.Options{
		Lease:     lease,
		Retention: 31 * 24 * time.Hour, // Adyen sends again for 30
	})
	if err != nil {
		return err
	}
	books, err := open(ctx, file)
	if err != nil {
		return err
	}
	s := &shop{ledger: books, stage: newStage()}
	mux := http.NewServeMux()
	for _, e := range endpoints(string(published)) {
		endpoint, err := callback.New(e.preset, guard, e.verify, s.handler(&e), &e.opts)
		if err != nil {
			return err
		}
		mux.Handle("POST /callbacks/"+e.preset.Name, nethttp.Handler(endpoint))
	}
	mux.HandleFunc("GET /idle", func(w http.ResponseWriter, _ *http.Request) {
		if stats := guard.Stats(); stats.Running+stats.Concluding > 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + ln.Addr().String())
	return http.Serve(ln, mux)
}

// handler books what a provider tells of. What can never be right is rejected, and
// looked at by people.
func (s *shop) handler(from *endpoint) callback.Handler {
	return func(ctx context.Context, e *callback.Event) error {
		if err := s.ledger.ran(ctx, e.Delivery.Header.Get(chainField)); err != nil {
			return err
		}
		b, err := from.read(e)
		switch {
		case err != nil:
			return callback.Reject(err)
		case b == nothing:
			return nil // acknowledged: it need not come again
		case b.amount > 0 && b.amount != price || b.amount < -price || b.currency != from.currency:
			return callback.Reject(errors.New("the amount or its currency is not the order's"))
		}
		b.thing = from.preset.Name + " " + b.thing
		if err := s.stage.enter(e); err != nil {
			return err
		}
		if err := s.ledger.book(ctx, e, b); err != nil {
			return err
		}
		s.stage.booked(e)
		return nil
	}
}

// stage is where the simulator has the shop fail, by header fields that no provider
// sends.
type stage struct{ directions <-chan struct{} }

func newStage() stage {
	directions := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			directions <- struct{}{}
		}
		os.Exit(0) // the simulator is gone
	}()
	return stage{directions}
}

const (
	stageField = "X-Simulate"
	chainField = "X-Simulate-Chain" // whose delivery it is
)

// What stageField may ask for.
const (
	fail  = "fail"  // the handler fails
	hold  = "hold"  // it says so, and waits to be told to go on
	crash = "crash" // the process is killed when the event is booked
)

func (s stage) enter(e *callback.Event) error {
	switch e.Delivery.Header.Get(stageField) {
	case fail:
		return errors.New("the books are closed")
	case hold:
		fmt.Println(hold)
		<-s.directions
	}
	return nil
}

func (stage) booked(e *callback.Event) {
	if e.Delivery.Header.Get(stageField) != crash {
		return
	}
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill() // SIGKILL: nothing runs after it
		select {}
	}
}
