package callback_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/callback"
)

// splits returns all ways to cut a text at some of its separators.
func splits(text, separator string) (all [][]string) {
	pieces := strings.Split(text, separator)
	for cuts := range 1 << (len(pieces) - 1) {
		parts := []string{pieces[0]}
		for i, piece := range pieces[1:] {
			if cuts>>i&1 == 1 {
				parts = append(parts, piece)
			} else {
				parts[len(parts)-1] += separator + piece
			}
		}
		all = append(all, parts)
	}
	return all
}

// adyenSigned is the text of an item that Adyen signs: eight fields with colons between
// them.
func adyenSigned(t *testing.T, f []string) string {
	t.Helper()
	value := json.RawMessage(f[4])
	if _, err := strconv.Atoi(f[4]); err != nil {
		value = json.RawMessage(strconv.Quote(f[4]))
	}
	item, err := json.Marshal(map[string]any{
		"pspReference": f[0], "originalReference": f[1], "merchantAccountCode": f[2], "merchantReference": f[3],
		"amount": map[string]any{"value": value, "currency": f[5]}, "eventCode": f[6], "success": f[7],
	})
	if err != nil {
		t.Fatal(err)
	}
	return adyen(string(item))
}

// One signature of Adyen proves one event of one order, however the signed text is cut
// into fields.
func TestAdyenSignatureIsOfOneEvent(t *testing.T) {
	t.Parallel()
	for _, signed := range [][]string{
		{"psp1", "", "Shop", "o1", "100", "EUR", "AUTHORISATION", "true"},
		{"psp1", "", "Shop", "order:17", "100", "EUR", "REFUND", "true"},
		{"psp1", "psp0", "Shop", "a:b:1:EUR:REFUND", "100", "EUR", "CAPTURE", "false"},
		{"psp1", "", "Shop", "::", "100", "EUR", "CHARGEBACK", "true"},
	} {
		genuine := itemOf(t, callback.Adyen(), nil, adyenSigned(t, signed))
		forgeries := 0
		for _, fields := range splits(strings.Join(signed, ":"), ":") {
			if len(fields) != len(signed) || slices.Equal(fields, signed) {
				continue
			}
			forgeries++
			items, err := callback.Adyen().Items(nil, []byte(adyenSigned(t, fields)))
			if err == nil {
				t.Errorf("%q has the signature of %q: got %q of order %q, beside %q of order %q, want it refused",
					fields, signed, items[0].Transition, items[0].Order, genuine.Transition, genuine.Order)
			}
		}
		if colons := strings.Count(signed[3], ":"); (colons == 0) != (forgeries == 0) {
			t.Errorf("%q: got %d forgeries to try, want some if the order has a colon, and none otherwise",
				signed, forgeries)
		}
	}
}

// One signature of Alipay proves one event of one order, however the signed text is cut
// into fields.
func TestAlipaySignatureIsOfOneEvent(t *testing.T) {
	t.Parallel()
	plain := map[string]string{
		"notify_id": "n1", "notify_time": "t", "out_trade_no": "o1", "total_amount": "5.00", "trade_status": "TRADE_SUCCESS",
	}
	for _, c := range []struct {
		field, value string // fields beside those
		accepted     bool
	}{
		{"subject", "Smith & Sons", true},
		{"subject", "x&total=1", true},
		{"subject", "x&total_amount=1", false},
		{"subject", "x&total_amount=9&trade_no=1", false},
		{"body", "https://example.com/?a=1&b=2&nzz=3", true},
		{"body", "x&notify_id=n2&nzz=1", false},
		{"body", "x&notify_id=n2&out_biz_no=b2", false},
		{"subject", "x&trade_status=TRADE_CLOSED&u=1", false},
		{"notify_time", "t&out_biz_no=b2&out_trade_no=o2&p=1", false},
		{"out_biz_no", "b1", true},
		{"refund_fee", "1.00", true},
		{"gmt_refund", "t", true},
	} {
		signed := url.Values{c.field: {c.value}}
		for name, value := range plain {
			if name != c.field {
				signed.Set(name, value)
			}
		}
		events, forgeries := map[string]string{}, 0
		for _, pairs := range splits(alipaySigned(signed), "&") {
			for _, form := range forms(pairs) {
				if alipaySigned(form) != alipaySigned(signed) {
					continue
				}
				forgeries++
				if items, err := callback.Alipay().Items(nil, []byte(form.Encode())); err == nil {
					event := items[0].DeliveryID + " " + items[0].Transition
					for _, field := range []string{"total_amount", "gmt_refund", "refund_fee"} {
						event += " " + form.Get(field)
					}
					events[event] = form.Encode()
				}
			}
		}
		switch genuine, err := callback.Alipay().Items(nil, []byte(signed.Encode())); {
		case (err == nil) != c.accepted:
			t.Errorf("%s=%s: got %+v, %v, want it accepted: %t", c.field, c.value, genuine, err, c.accepted)
		case c.accepted && len(events) != 1, !c.accepted && len(events) != 0, forgeries < 2:
			t.Errorf("%s=%s: of %d forms with one signature these are events: %q, "+
				"want one if it is accepted (%t), or none", c.field, c.value, forgeries, events, c.accepted)
		}
	}
}

// alipaySigned is the text of a form that Alipay signs.
func alipaySigned(form url.Values) string {
	var pairs []string
	for name, values := range form {
		for _, value := range values {
			pairs = append(pairs, name+"="+value)
		}
	}
	slices.SortFunc(pairs, cmp.Compare)
	return strings.Join(pairs, "&")
}

// forms returns the forms that pairs make, each pair cut at its first = or at its last.
func forms(pairs []string) (all []url.Values) {
	for _, last := range []bool{false, true} {
		form := url.Values{}
		for _, pair := range pairs {
			at := strings.Index(pair, "=")
			if last {
				at = strings.LastIndex(pair, "=")
			}
			if at < 0 {
				return nil
			}
			form.Add(pair[:at], pair[at+1:])
		}
		all = append(all, form)
	}
	return all
}

// An SDK may trim values before it verifies, or take one of two equal fields. That makes
// no new event.
func TestAlipayFieldsAreExact(t *testing.T) {
	t.Parallel()
	for _, form := range []url.Values{
		{"notify_id": {"n1 "}}, {"notify_id": {"\u00a0n1"}}, {"notify_id": {"n1\n"}}, {"out_trade_no": {" o1"}},
		{"trade_status": {"TRADE_SUCCESS\t"}}, {"out_biz_no": {"b1 "}}, {"total_amount": {"1.00", "2.00"}},
	} {
		whole, err := url.ParseQuery(alipayForm)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(whole, form)
		if items, err := callback.Alipay().Items(nil, []byte(whole.Encode())); err == nil {
			t.Errorf("%s: got %+v, want an error", whole.Encode(), items)
		}
	}
}
