package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/stock"
)

// crowd is the clients of the service, and somebody who edits a record.
type crowd struct {
	url  string
	rdb  redis.UniversalClient
	sale *stock.Stock
}

// play goes on until ctx ends.
func (c *crowd) play(ctx context.Context) {
	var all sync.WaitGroup
	repeat := func(pause time.Duration, do func(n int)) {
		all.Go(func() {
			ticks := time.NewTicker(pause)
			defer ticks.Stop()
			for n := 0; ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-ticks.C:
					do(n)
				}
			}
		})
	}
	for user := range 5 { // each asks twice as often as it may
		repeat(25*time.Millisecond, func(int) { c.send(ctx, http.MethodGet, "/hello", "X-User", fmt.Sprint("user-", user)) })
	}
	for name := range 4 { // two want each report
		for range 2 {
			repeat(200*time.Millisecond, func(int) { c.send(ctx, http.MethodPost, fmt.Sprint("/reports/", name)) })
		}
	}
	repeat(50*time.Millisecond, c.pays(ctx))
	repeat(50*time.Millisecond, func(n int) {
		c.send(ctx, http.MethodPost, "/sale/"+[]string{phone, phone, phone, socks}[n%4], "X-User", rand.Text())
	})
	repeat(3*time.Second, c.edits(ctx))
	all.Wait()
}

// pays sends a payment under a new key, and again, since the first answer may be lost. One provider in ten is silent.
func (c *crowd) pays(ctx context.Context) func(int) {
	return func(n int) {
		header := []string{"X-User", "user-1", "Idempotency-Key", rand.Text()}
		if n%10 == 0 {
			header = append(header, "X-Provider", "silent")
		}
		c.send(ctx, http.MethodPost, "/payments", header...)
		c.send(ctx, http.MethodPost, "/payments", header...)
	}
}

// edits puts a pair of socks into a record by hand, so that its numbers do not add up, and later opens the item anew.
// It opens the phones too, which a Redis that comes back empty does not know.
func (c *crowd) edits(ctx context.Context) func(int) {
	return func(n int) {
		if n%2 == 0 {
			_ = c.rdb.HIncrBy(ctx, "neap:stock:sale:{"+socks+"}", "left", 1).Err() // Redis may be away
			return
		}
		if _, err := c.sale.Forget(ctx, socks); err == nil {
			_, _ = c.sale.Open(ctx, socks, units, time.Now().Add(24*time.Hour))
			_, _ = c.sale.Open(ctx, phone, units, time.Now().Add(24*time.Hour))
		}
	}
}

// send sends a request; what is answered shows in the metrics.
func (c *crowd) send(ctx context.Context, method, path string, header ...string) {
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, http.NoBody)
	if err != nil {
		return
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
}
