package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// assertShelf holds an item to what is left of it, and sold.
func assertShelf(t *testing.T, url string, left, sold int64) {
	t.Helper()
	a := ask(t, http.MethodGet, url)
	var got map[string]int64
	err := json.Unmarshal([]byte(a.body), &got)
	if err != nil || a.status != 200 || a.header.Get("Content-Type") != contentJSON ||
		got["left"] != left || got["sold"] != sold {
		t.Errorf("got %d %v %s (%v), want %d left and %d sold", a.status, a.header, a.body, err, left, sold)
	}
}

func TestFlashOnEveryFramework(t *testing.T) {
	t.Parallel()
	for _, f := range frameworks {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			url := serving(t, "-framework", f.Name, "-budget", patient) + "/flash/"
			assertShelf(t, url+"phone", flashUnits, 0)
			for _, c := range []struct {
				item       string
				buyers     []string
				status     int
				kind, says string
			}{
				{"phone", nil, 400, "application/problem+json", `"status":400`},
				{"phone", []string{""}, 400, "application/problem+json", `"status":400`},
				{"phone", []string{"ann", "ann"}, 400, "application/problem+json", `"status":400`},
				{"car", []string{"ann"}, 404, "application/problem+json", "#unknown-item"},
				{"phone", []string{"ann"}, 201, contentJSON, `"item":"phone"`},
				{"phone", []string{"ann"}, 409, "application/problem+json", "#already-yours"},
				{"phon%65", []string{"bob"}, 201, contentJSON, `"item":"phone"`},
			} {
				a := purchase(t.Context(), url+c.item, c.buyers...)
				if a.status != c.status || a.header.Get("Content-Type") != c.kind ||
					!strings.Contains(a.body, c.says) || strings.Contains(a.body, "ann") {
					t.Errorf("%s for %q: got %d %v %q, want %d %s that says %s and names no buyer",
						c.item, c.buyers, a.status, a.header, a.body, c.status, c.kind, c.says)
				}
			}
			assertShelf(t, url+"phone", flashUnits-2, 2)
			if a := ask(t, http.MethodGet, url+"car"); a.status != 404 || !strings.Contains(a.body, "#unknown-item") {
				t.Errorf("got %d %q, want 404 for an item that was not opened", a.status, a.body)
			}
			if a := ask(t, http.MethodHead, url+"phone"); a.status != 200 || a.body != "" {
				t.Errorf("got %d %q, want 200 and no body for HEAD", a.status, a.body)
			}
		})
	}
}

// TestFlashOnAccount: a phone is held for its order, and sold when that is paid,
// which is told twice.
func TestFlashOnAccount(t *testing.T) {
	t.Parallel()
	for _, f := range frameworks {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			url := serving(t, "-framework", f.Name, "-budget", patient)
			a := purchase(t.Context(), url+"/flash/phone/orders", "ann")
			var placed struct {
				Order string    `json:"order"`
				Until time.Time `json:"pay_until"`
			}
			if err := json.Unmarshal([]byte(a.body), &placed); err != nil || a.status != 202 ||
				placed.Order == "" || !placed.Until.After(time.Now()) {
				t.Fatalf("got %d %q (%v), want 202 with an order and until when to pay", a.status, a.body, err)
			}
			for _, path := range []string{"/flash/phone", "/flash/phone/orders"} {
				if a := purchase(t.Context(), url+path, "ann"); a.status != 409 || !strings.Contains(a.body, "#already-yours") {
					t.Errorf("%s again: got %d %q, want 409 already-yours", path, a.status, a.body)
				}
			}
			pay := func(id, status string) {
				t.Helper()
				form := "notify_id=" + id + "&out_trade_no=" + placed.Order + "&trade_status=" + status
				if a := tell(t, url+"/callbacks/alipay", form, "ok"); a.status != 200 || a.body != "success" {
					t.Errorf("got %d %q, want 200 success", a.status, a.body)
				}
			}
			for id, status := range map[string]string{"awaited": "WAIT_BUYER_PAY", "refund": "TRADE_SUCCESS&gmt_refund=2026&out_biz_no=1"} {
				pay(id, status)
				assertShelf(t, url+"/flash/phone", flashUnits-1, 0)
			}
			for range 2 {
				pay("paid", "TRADE_SUCCESS")
				assertShelf(t, url+"/flash/phone", flashUnits-1, 1)
			}
		})
	}
}

// TestFlashSellsNoMore has one item sold by all frameworks, on one Redis, and one
// of them begin when some is sold already.
func TestFlashSellsNoMore(t *testing.T) {
	t.Parallel()
	address := redistest.NewStandalone(t).AdminURL()
	var urls []string
	begin := func(name string) {
		urls = append(urls, serving(t, "-framework", name, "-redis", address, "-budget", patient)+"/flash/phone")
	}
	for _, f := range frameworks[1:] {
		begin(f.Name)
	}
	if a := purchase(t.Context(), urls[0], "early"); a.status != 201 {
		t.Errorf("got %d %s, want 201 for the first buyer", a.status, a.body)
	}
	begin(frameworks[0].Name)
	assertShelf(t, urls[len(urls)-1], flashUnits-1, 1)
	var sold atomic.Int64
	var wg sync.WaitGroup
	turns := make(chan struct{}, 32)
	for i := range 3 * flashUnits {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			switch a := purchase(t.Context(), urls[i%len(urls)], fmt.Sprint(i/2)); a.status {
			case 201:
				sold.Add(1)
			case 409:
			default:
				t.Errorf("got %d %s, want 201, or 409 for a second one and when all are sold", a.status, a.body)
			}
		})
	}
	wg.Wait()
	if sold.Load() != flashUnits-1 {
		t.Errorf("got %d sold, want %d", sold.Load(), flashUnits-1)
	}
	for _, url := range urls {
		assertShelf(t, url, 0, flashUnits)
		if a := purchase(t.Context(), url, "late"); a.status != 409 || !strings.Contains(a.body, "#sold-out") {
			t.Errorf("got %d %s, want 409 sold-out after all were sold", a.status, a.body)
		}
	}
}
