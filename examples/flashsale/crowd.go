package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/gate"
)

// crowd is who comes to a sale.
type crowd struct {
	units, buyers, requests, connections int

	pay bool // by a callback, for what was held
}

// buy sends the requests, in no order, each connection its next one as soon as it
// has an answer. Its error is a request that got none.
func (c crowd) buy(ctx context.Context, url string) (*tally, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	order := rand.Perm(c.requests)
	var next atomic.Int64
	t := &tally{told: map[string]told{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	began := time.Now()
	for range c.connections {
		all.Go(func() {
			one := &http.Transport{} // a connection of its own
			defer one.CloseIdleConnections()
			client := &http.Client{Transport: one, Timeout: time.Minute}
			for i := next.Add(1); i <= int64(c.requests); i = next.Add(1) {
				buyer := fmt.Sprint("buyer-", order[i-1]%c.buyers)
				what, err := ask(ctx, client, url, buyer)
				if err != nil {
					fail(err)
					return
				}
				mu.Lock()
				t.add(buyer, what)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	t.took = time.Since(began)
	return t, context.Cause(ctx)
}

// What a buyer may be told.
const (
	created = "201" // or 202, and acknowledged when it was paid
	soldOut = "409 " + gate.TypeStock + "sold-out"
	yours   = "409 " + gate.TypeStock + "already-yours"
)

// ask sends a request, pays for the order that it may be answered with, and returns
// status and problem type of the answer.
func ask(ctx context.Context, client *http.Client, url, buyer string) (string, error) {
	status, body, err := post(ctx, client, url+"/flash/"+item, buyerHeader, buyer, nil)
	if err != nil {
		return "", err
	}
	if status == http.StatusAccepted {
		return created, pay(ctx, client, url, string(body))
	}
	what := strconv.Itoa(status)
	var problem struct {
		Type string `json:"type"`
	}
	if status >= 400 && json.Unmarshal(body, &problem) == nil && problem.Type != "" {
		what += " " + problem.Type
	}
	return what, nil
}

// pay tells twice that an order is paid, as a provider may, and each time again when
// it is asked to come later: a busy machine may not settle within the deadline.
func pay(ctx context.Context, client *http.Client, url, number string) error {
	form := "notify_id=" + number + "&out_trade_no=" + number + "&trade_status=TRADE_SUCCESS"
	for acknowledged, tries := 0, 50; acknowledged < 2; tries-- {
		status, body, err := post(ctx, client, url+"/paid", signature, "ok", strings.NewReader(form))
		switch {
		case err != nil:
			return err
		case status == http.StatusOK && string(body) == "success":
			acknowledged++
		case status != http.StatusServiceUnavailable || tries == 0:
			return fmt.Errorf("a payment was answered with %d %s", status, body)
		default:
			time.Sleep(100 * time.Millisecond)
		}
	}
	return nil
}

func post(ctx context.Context, client *http.Client, url, field, value string, body io.Reader) (status int, answer []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set(field, value)
	a, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer a.Body.Close()
	answer, err = io.ReadAll(a.Body)
	return a.StatusCode, answer, err
}
