package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/neap-go/neap/internal/redistest"
)

// assertLedger holds the ledger of a process to what it has booked.
func assertLedger(t *testing.T, url string, want map[string]int) {
	t.Helper()
	a := ask(t, http.MethodGet, url+"/ledger")
	var got map[string]int
	err := json.Unmarshal([]byte(a.body), &got)
	if err != nil || a.status != 200 || a.header.Get("Content-Type") != contentJSON ||
		got == nil || !maps.Equal(got, want) {
		t.Errorf("got %d %v %s (%v), want 200 and the ledger %v in JSON", a.status, a.header, a.body, err, want)
	}
}

const (
	alipayPayment = "notify_id=1&out_trade_no=a17&trade_status=TRADE_SUCCESS"
	alipayRefund  = "notify_id=2&out_trade_no=a17&trade_status=TRADE_SUCCESS&out_biz_no=r1&refund_fee=1.00"
	wechatPayment = `{"id":"%","event_type":"TRANSACTION.SUCCESS","resource":{"out_trade_no":"w17"}}`
	wechatRefund  = `{"id":"%","event_type":"REFUND.SUCCESS","resource":{"out_trade_no":"w17","out_refund_no":"r1"}}`
	stripePayment = `{"id":"evt_1","type":"payment_intent.succeeded","data":{"object":{"id":"pi_17"}}}`
	stripeRefund  = `{"id":"evt_2","type":"charge.refunded","data":{"object":{"id":"pi_17"}}}`
)

func TestCallbacksOnEveryFramework(t *testing.T) {
	t.Parallel()
	for _, f := range frameworks {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			url := serving(t, "-framework", f.Name, "-budget", patient)
			for _, c := range []struct {
				path, event string
				signatures  []string
				status      int
				kind, body  string
			}{
				{"alipay", alipayPayment, nil, 401, contentType, "fail"},
				{"alipay", alipayPayment, []string{"no"}, 401, contentType, "fail"},
				{"alipay", alipayPayment, []string{"ok", "ok"}, 401, contentType, "fail"},
				{"alipay", "out_trade_no=a17", []string{"ok"}, 400, contentType, "fail"},
				{"wechat", wechatPayment, nil, 401, contentJSON,
					`{"code":"FAIL","message":"the notification is refused"}`},
				{"stripe", stripePayment, nil, 401, "", ""},
				{"stripe", "{", []string{"ok"}, 400, "", ""},
			} {
				a := tell(t, url+"/callbacks/"+c.path, c.event, c.signatures...)
				if a.status != c.status || a.header.Get("Content-Type") != c.kind || a.body != c.body {
					t.Errorf("%s to %s: got %d %v %q, want %d %q %q",
						c.event, c.path, a.status, a.header, a.body, c.status, c.kind, c.body)
				}
			}
			assertLedger(t, url, map[string]int{})
			for _, again := range []string{"1", "2", "3"} {
				for _, c := range []struct {
					path, event string
					status      int
					kind, body  string
				}{
					{"alipay", alipayPayment, 200, contentType, "success"},
					{"alipay", alipayRefund, 200, contentType, "success"},
					{"wechat", wechatPayment, 204, "", ""},
					{"wechat", wechatRefund, 204, "", ""},
					{"stripe", stripePayment, 200, "", ""},
					{"stripe", stripeRefund, 200, "", ""},
				} {
					a := tell(t, url+"/callbacks/"+c.path, strings.ReplaceAll(c.event, "%", again), "ok")
					if a.status != c.status || a.header.Get("Content-Type") != c.kind || a.body != c.body {
						t.Errorf("%s to %s: got %d %v %q, want %d %q %q",
							c.event, c.path, a.status, a.header, a.body, c.status, c.kind, c.body)
					}
				}
				assertLedger(t, url, map[string]int{"a17": 2, "w17": 2, "pi_17": 2})
			}
			if got := ask(t, http.MethodGet, url+"/callbacks/alipay").status; got != 405 {
				t.Errorf("got %d, want 405 for GET", got)
			}
		})
	}
}

// TestAPaymentIsBookedOnce has it told of many times at once, to every framework:
// all of them share their guards, and one of them books.
func TestAPaymentIsBookedOnce(t *testing.T) {
	t.Parallel()
	address := redistest.NewStandalone(t).AdminURL()
	var urls []string
	for _, f := range frameworks {
		urls = append(urls, serving(t, "-framework", f.Name, "-redis", address, "-budget", patient))
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			a := tell(t, urls[i%len(urls)]+"/callbacks/alipay", alipayPayment, "ok")
			if (a.status != 200 || a.body != "success") && (a.status != 503 || a.body != "fail") {
				t.Errorf("got %d %q, want 200 success, or 503 fail while it is booked", a.status, a.body)
			}
		})
	}
	wg.Wait()
	booked := 0
	for _, url := range urls {
		if a := tell(t, url+"/callbacks/alipay", alipayPayment, "ok"); a.status != 200 || a.body != "success" {
			t.Errorf("got %d %q, want 200 success after it was booked", a.status, a.body)
		}
		var ledger map[string]int
		if err := json.Unmarshal([]byte(ask(t, http.MethodGet, url+"/ledger").body), &ledger); err != nil {
			t.Error(err)
		}
		booked += ledger["a17"]
	}
	if booked != 1 {
		t.Errorf("got it booked %d times, want once", booked)
	}
}
