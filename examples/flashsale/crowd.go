package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/gate"
)

// crowd is who comes to a sale.
type crowd struct{ units, buyers, requests, connections int }

// buy sends the requests, in no order, each connection its next one as soon as it
// has an answer. Its error is a request that got none.
func (c crowd) buy(ctx context.Context, url string, p *progress) (*tally, error) {
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
				p.answered(what == created)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	t.took = time.Since(began)
	p.end()
	return t, context.Cause(ctx)
}

// What a buyer may be told.
const (
	created = "201"
	soldOut = "409 " + gate.TypeStock + "sold-out"
	yours   = "409 " + gate.TypeStock + "already-yours"
)

// ask sends a request, and returns status and problem type of its answer.
func ask(ctx context.Context, client *http.Client, url, buyer string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return "", err
	}
	r.Header.Set(buyerHeader, buyer)
	answer, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	what := strconv.Itoa(answer.StatusCode)
	var problem struct {
		Type string `json:"type"`
	}
	if answer.StatusCode >= 400 && json.Unmarshal(body, &problem) == nil && problem.Type != "" {
		what += " " + problem.Type
	}
	return what, nil
}
