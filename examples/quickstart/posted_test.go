package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"
)

const (
	tea    = `{"item":"tea"}`
	coffee = `{"item":"coffee"}`

	alipayPayment = "notify_id=1&out_trade_no=a17&trade_status=TRADE_SUCCESS"
	alipayRefund  = "notify_id=2&out_trade_no=a17&trade_status=TRADE_SUCCESS&out_biz_no=r1&refund_fee=1.00"
	wechatPayment = `{"id":"%d","event_type":"TRANSACTION.SUCCESS","resource":{"out_trade_no":"w17"}}`
	wechatRefund  = `{"id":"%d","event_type":"REFUND.SUCCESS","resource":{"out_trade_no":"w17","out_refund_no":"r1"}}`
	stripePayment = `{"id":"evt_1","type":"payment_intent.succeeded","data":{"object":{"id":"pi_17"}}}`
	stripeRefund  = `{"id":"evt_2","type":"charge.refunded","data":{"object":{"id":"pi_17"}}}`
)

// posted is what is sent by POST, and what is answered. An answer without a Content-Type
// has no body.
type posted struct {
	target string
	header http.Header
	body   string
	status int
	kind   string
	says   string
}

func (p posted) to(t *testing.T, url string) reply {
	t.Helper()
	a := must(t, http.MethodPost, url+p.target, p.body, p.header)
	if a.status != p.status || a.header.Get("Content-Type") != p.kind || !strings.Contains(a.body, p.says) || (p.kind == "" || p.kind == contentType) && a.body != p.says {
		t.Errorf("%s with %v and %q: got %d %v %q, want %d %q %q", p.target, p.header, p.body, a.status, a.header, a.body, p.status, p.kind, p.says)
	}
	return a
}

// Headers of orders, buyers, providers, and orders under a key; "" is a field that is not there.
func ordering(orders ...string) http.Header { return http.Header{orderHeader: orders} }

func buying(buyers ...string) http.Header { return http.Header{buyerHeader: buyers} }

func signed(signatures ...string) http.Header { return http.Header{signatureHeader: signatures} }

func keyed(client, key string) http.Header {
	header := http.Header{"Content-Type": {contentJSON}}
	for name, value := range map[string]string{apiKeyHeader: client, keyHeader: key} {
		if value != "" {
			header.Set(name, value)
		}
	}
	return header
}

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

// TestWhatIsPostedToEveryFramework: how the routes behave at once, behind one another and
// when a client goes away is tested by gatetest and by the fleet.
func TestWhatIsPostedToEveryFramework(t *testing.T) {
	t.Parallel()
	for _, f := range frameworks {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			url := serving(t, "-framework", f.Name, "-budget", patient)
			for _, p := range []posted{
				{"/exclusive?ms=0", ordering(), "", 400, contentProblem, ""},
				{"/exclusive?ms=0", ordering(""), "", 400, contentProblem, ""},
				{"/exclusive?ms=0", ordering("17", "17"), "", 400, contentProblem, ""},
				{"/exclusive?ms=0", ordering(strings.Repeat("1", 2000)), "", 400, contentProblem, ""},
				{"/exclusive", ordering(), "", 400, contentProblem, ""},
				{"/exclusive?ms=", ordering("17"), "", 400, contentProblem, ""},
				{"/exclusive?ms=x", ordering("17"), "", 400, contentProblem, ""},
				{"/exclusive?ms=-1", ordering("17"), "", 400, contentProblem, ""},
				{"/exclusive?ms=10001", ordering("17"), "", 400, contentProblem, ""},
				{"/exclusive?ms=1&ms=1", ordering("17"), "", 400, contentProblem, ""},
				{"/exclusive", ordering("17"), "", 200, contentJSON, `{"fence":`},

				{"/orders", keyed("me", ""), tea, 400, contentProblem, ""},
				{"/orders", keyed("me", strings.Repeat("k", 256)), tea, 400, contentProblem, ""},
				{"/orders", keyed("me", "a,b"), tea, 400, contentProblem, ""},
				{"/orders", keyed("", "1"), tea, 401, contentProblem, ""},
				{"/orders?ms=x", keyed("me", "1"), tea, 400, contentProblem, ""},
				{"/orders?ms=10001", keyed("me", "1"), tea, 400, contentProblem, ""},
				{"/orders", keyed("me", "no JSON"), `{"item":`, 400, contentType, "the body is not JSON\n"},
				{"/orders", keyed("me", "1"), tea, 201, contentJSON, `"order":` + tea},
				{"/orders", keyed("me", `"1"`), tea, 201, contentJSON, `"order":` + tea},
				{"/orders", keyed("you", "1"), coffee, 201, contentJSON, `"order":` + coffee},
				{"/orders", keyed("me", "1"), coffee, 422, contentProblem, "#key-reused"},
				{"/orders?ms=1", keyed("me", "1"), tea, 422, contentProblem, ""},

				{"/flash/phone", buying(), "", 400, contentProblem, `"status":400`},
				{"/flash/phone", buying(""), "", 400, contentProblem, `"status":400`},
				{"/flash/phone", buying("ann", "ann"), "", 400, contentProblem, `"status":400`},
				{"/flash/car", buying("ann"), "", 404, contentProblem, "#unknown-item"},
				{"/flash/phone", buying("ann"), "", 201, contentJSON, `"item":"phone"`},
				{"/flash/phone", buying("ann"), "", 409, contentProblem, "#already-yours"},
				{"/flash/phon%65", buying("bob"), "", 201, contentJSON, `"item":"phone"`},

				{"/callbacks/alipay", signed(), alipayPayment, 401, contentType, "fail"},
				{"/callbacks/alipay", signed("no"), alipayPayment, 401, contentType, "fail"},
				{"/callbacks/alipay", signed("ok", "ok"), alipayPayment, 401, contentType, "fail"},
				{"/callbacks/alipay", signed("ok"), "out_trade_no=a17", 400, contentType, "fail"},
				{"/callbacks/wechat", signed(), wechatPayment, 401, contentJSON, `{"code":"FAIL","message":"the notification is refused"}`},
				{"/callbacks/stripe", signed(), stripePayment, 401, "", ""},
				{"/callbacks/stripe", signed("ok"), "{", 400, "", ""},
			} {
				if a := p.to(t, url); strings.HasPrefix(p.target, "/flash/") && strings.Contains(a.body, "ann") {
					t.Errorf("%s: got %q, want the buyer not to be named", p.target, a.body)
				}
			}
			assertShelf(t, url+"/flash/phone", flashUnits-2, 2)
			for again := range 3 {
				for _, p := range []posted{
					{"/callbacks/alipay", signed("ok"), alipayPayment, 200, contentType, "success"},
					{"/callbacks/alipay", signed("ok"), alipayRefund, 200, contentType, "success"},
					{"/callbacks/wechat", signed("ok"), fmt.Sprintf(wechatPayment, again), 204, "", ""},
					{"/callbacks/wechat", signed("ok"), fmt.Sprintf(wechatRefund, again), 204, "", ""},
					{"/callbacks/stripe", signed("ok"), stripePayment, 200, "", ""},
					{"/callbacks/stripe", signed("ok"), stripeRefund, 200, "", ""},
				} {
					p.to(t, url)
				}
			}
			var ledger map[string]int
			a := ask(t, http.MethodGet, url+"/ledger")
			err := json.Unmarshal([]byte(a.body), &ledger)
			if want := map[string]int{"a17": 2, "w17": 2, "pi_17": 2}; err != nil || a.header.Get("Content-Type") != contentJSON || !maps.Equal(ledger, want) {
				t.Errorf("got %d %v %s (%v), want the ledger %v in JSON", a.status, a.header, a.body, err, want)
			}
			sellOnAccount(t, url)
		})
	}
}

// sellOnAccount has a phone be held for its order, and sold when that is paid, which is
// told twice, and not by a refund.
func sellOnAccount(t *testing.T, url string) {
	t.Helper()
	a := posted{"/flash/phone/orders", buying("cid"), "", 202, contentJSON, `"order":`}.to(t, url)
	var placed struct {
		Order string    `json:"order"`
		Until time.Time `json:"pay_until"`
	}
	if err := json.Unmarshal([]byte(a.body), &placed); err != nil || placed.Order == "" || !placed.Until.After(time.Now()) {
		t.Fatalf("got %q (%v), want an order and until when to pay", a.body, err)
	}
	for _, path := range []string{"/flash/phone", "/flash/phone/orders"} {
		posted{path, buying("cid"), "", 409, contentProblem, "#already-yours"}.to(t, url)
	}
	for _, told := range []struct {
		id, status string
		sold       int64
	}{
		{"awaited", "WAIT_BUYER_PAY", 2},
		{"refund", "TRADE_SUCCESS&gmt_refund=2026&out_biz_no=1", 2},
		{"finished", "TRADE_FINISHED", 3}, // it comes first if there are no refunds
		{"paid", "TRADE_SUCCESS", 3},
		{"paid", "TRADE_SUCCESS", 3},
	} {
		form := "notify_id=" + told.id + "&out_trade_no=" + placed.Order + "&trade_status=" + told.status
		posted{"/callbacks/alipay", signed("ok"), form, 200, contentType, "success"}.to(t, url)
		assertShelf(t, url+"/flash/phone", flashUnits-3, told.sold)
	}
}
