package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/examples/internal/backend"
	"github.com/neap-go/neap/examples/internal/host"
	"github.com/neap-go/neap/internal/redistest"
)

// TestALatePayment: when the hold of a phone has ended, its payment is confirmed if
// there is a phone, and refused, for a refund, if somebody else has it. What is no payment
// sells nothing.
func TestALatePayment(t *testing.T) {
	t.Parallel()
	s, err := backend.Embed()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	st, err := store.Open(s.Redis, &store.Options{Budget: time.Minute}) // the machine may be busy
	if err != nil {
		t.Fatal(err)
	}
	// A hold ends soon, but not before a busy machine has its answer.
	phones, err := stock.New(st, "phones", &stock.Options{Lease: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := phones.Open(t.Context(), item, 1, time.Now().Add(lasts)); err != nil {
		t.Fatal(err)
	}
	shop, err := newShop(st, phones, gate.Reserve(phones, gate.ByParam("item"), gate.ByHeader(buyerHeader), &gate.ReserveOptions{Keep: true}))
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.Listen(t.Context(), "127.0.0.1:0", shop.serve())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Stop(t.Context(), time.Minute); err != nil {
			t.Error(err)
		}
	}()
	order := func(buyer string) (number string) {
		redistest.Await(t, 2*time.Minute, "a phone for "+buyer, func() bool {
			status, body, err := post(t.Context(), http.DefaultClient, h.URL+"/flash/"+item, buyerHeader, buyer, nil)
			number = string(body)
			return err == nil && status == http.StatusAccepted
		})
		return number
	}
	ann := order("ann")
	bob := order("bob") // when ann's hold has ended
	redistest.Await(t, 2*time.Minute, "the end of bob's hold", func() bool {
		l, err := phones.Left(t.Context(), item)
		return err == nil && l.Left == 1
	})
	for i, form := range []string{"trade_status=WAIT_BUYER_PAY", "trade_status=TRADE_CLOSED", "trade_status=TRADE_SUCCESS&gmt_refund=2026&out_biz_no=1"} {
		redistest.Await(t, 2*time.Minute, form+" to be acknowledged", func() bool {
			status, body, err := post(t.Context(), http.DefaultClient, h.URL+"/paid", signature, "ok",
				strings.NewReader(fmt.Sprintf("notify_id=%d&out_trade_no=%s&%s", i, bob, form)))
			return err == nil && status == http.StatusOK && string(body) == "success"
		})
		if l, err := phones.Left(t.Context(), item); err != nil || l.Sold != 0 {
			t.Errorf("%s: got %+v, %v, want none sold", form, l, err)
		}
	}
	if err := pay(t.Context(), http.DefaultClient, h.URL, bob); err != nil {
		t.Errorf("a late payment while there is a phone: got %v, want no error", err)
	}
	for _, number := range []string{ann, "17"} {
		if err := pay(t.Context(), http.DefaultClient, h.URL, number); err == nil || !strings.Contains(err.Error(), "400") {
			t.Errorf("a payment for what there is not: got %v, want 400", err)
		}
	}
	if l, err := phones.Left(t.Context(), item); err != nil || l.Sold != 1 {
		t.Errorf("got %+v, %v, want 1 sold", l, err)
	}
}
