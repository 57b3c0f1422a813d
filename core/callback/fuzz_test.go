package callback_test

import (
	"errors"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/callback"
)

// FuzzItems lets every preset look for events in arbitrary bytes. The preset finds
// events, each with a key, or says that the delivery is malformed. A second time it finds
// the same.
func FuzzItems(f *testing.F) {
	var presets []callback.Preset
	for _, p := range providers() {
		presets = append(presets, p.preset)
		f.Add([]byte(p.body))
		f.Add([]byte(p.another))
	}
	for _, seed := range []string{
		`{"id":"a","id":"b"}`, `{"id":1e400}`, `{"id":` + strings.Repeat("9", 400) + `,"type":"t"}`,
		strings.Repeat("[", 20_000), strings.Repeat(`{"data":`, 5000) + "1" + strings.Repeat("}", 5000),
		"{\"id\":\"\xff\xfe\",\"type\":\"t\"}", `{"id":"\ud800","type":"t"}`, "notify_id=%zz", "notify_id=a;out_trade_no=b",
		`{"notificationItems":[null]}`, `{"notificationItems":[{"NotificationRequestItem":null}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, p := range presets {
			d := &callback.Delivery{Header: http.Header{"Webhook-Id": {"msg_1"}, "Shopify-Topic": {"t"}, "Shopify-Event-Id": {"e1"}}, Body: payload}
			items, err := p.Items(d, payload)
			if err != nil {
				if !errors.Is(err, callback.ErrMalformed) {
					t.Errorf("%s: got %v, want %v", p.Name, err, callback.ErrMalformed)
				}
				continue
			}
			for _, item := range items {
				if key := map[bool]string{true: item.Transition, false: item.DeliveryID}[p.ByTransition]; key == "" {
					t.Errorf("%s: got an event without a key: %+v, want one", p.Name, item)
				}
			}
			if again, err := p.Items(d, payload); err != nil || !reflect.DeepEqual(again, items) {
				t.Errorf("%s: got %+v, %v the second time, want %+v", p.Name, again, err, items)
			}
		}
	})
}

// A string of 1 MB costs a few times its size at most, wherever it is.
func TestItemsBounded(t *testing.T) { //nolint:paralleltest // it counts what is allocated
	const size = 1 << 20
	long := strings.Repeat("x", size)
	for name, payload := range map[string]string{
		"a value":     `{"id":"` + long + `","type":"t"}`,
		"a name":      `{"` + long + `":1,"id":"a","type":"t"}`,
		"many values": `{"id":"a","type":"t","list":[` + strings.Repeat("1,", size/2) + `1]}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := callback.Stripe().Items(nil, []byte(payload)); err != nil {
			t.Errorf("%s: got %v, want no error", name, err)
		}
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 40*size {
			t.Errorf("%s: got %d bytes allocated for %d, want %d at most", name, grown, len(payload), 40*size)
		}
	}
}
