package callback_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

func TestConstructorFaults(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, rdb redis.UniversalClient, prefix string) {
		short, err := idempotency.New(storetest.At(t, rdb, prefix), "short", idempotency.Retry{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = callback.New(callback.Adyen(), short, demoVerify, (&shop{}).book, nil)
		if err == nil || !strings.Contains(err.Error(), "Retention is 24h0m0s: use at least 744h0m0s, for as long as adyen may send an event again") {
			t.Errorf("got %v, want an error with the least Retention", err)
		}
		locker, err := lock.New(storetest.At(t, rdb, prefix), "orders", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = callback.New(callback.Preset{Deadline: 15, Retention: 60}, nil, nil, nil, &callback.Options{MaxBody: -1, Serialize: locker.As("me")})
		for _, want := range []string{"Preset.Name", "Preset.Items", "Preset.Done", "Preset.Refused", "Preset.Later", "Preset.Deadline is 15ns",
			"Preset.Retention is 60ns", "guard: idempotency: a nil or zero Guard", "verify is nil", "handle is nil", "MaxBody is -1", "Serialize was made by As"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got the error %v, want %q in it", err, want)
			}
		}
		_, err = callback.New(callback.Adyen(), new(idempotency.Guard), demoVerify, nil, &callback.Options{Serialize: new(lock.Locker)})
		for _, want := range []string{"guard: idempotency: a nil or zero Guard", "handle is nil", "Serialize: lock: a nil or zero Locker"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("zero values: got the error %v, want %q in it", err, want)
			}
		}
		unsigned := callback.GitHub()
		unsigned.ByTransition = false
		g := guard(t, rdb, prefix, idempotency.Options{})
		for want, p := range map[string]callback.Preset{
			"DistinctDeliveries is set":              callback.Stripe(),
			"UnsignedID is set without ByTransition": unsigned,
		} {
			if _, err := callback.New(p, g, demoVerify, (&shop{}).book, &callback.Options{DistinctDeliveries: true}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got the error %v, want %q in it", err, want)
			}
		}
	})
}

// A guard may remember events for exactly as long as the preset asks, and not for less.
func TestRetentionIsEnough(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	rdb, prefix := srv.Client(t), srv.Prefix(t)
	for name, p := range providers() {
		for short, fine := range map[time.Duration]bool{0: true, time.Second: false} {
			g, err := idempotency.New(storetest.At(t, rdb, prefix), "exact", idempotency.Retry{}, &idempotency.Options{
				Retention: p.preset.Retention - short, DoubtRetention: month,
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := callback.New(p.preset, g, demoVerify, (&shop{}).book, nil); (err == nil) != fine {
				t.Errorf("%s, %v short: got %v, want it accepted: %t", name, short, err, fine)
			}
		}
	}
}

// The name of a preset ends at the colon of its keys, so it must have no colon.
func TestPresetNames(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	g := guard(t, srv.Client(t), srv.Prefix(t), idempotency.Options{})
	for name, fine := range map[string]bool{
		"aZ-09": true, strings.Repeat("n", 32): true, strings.Repeat("n", 33): false, "a-": false, "-": false, "a:b": false, "a b": false, "\xc3\xa9": false,
	} {
		p := callback.Alipay()
		p.Name = name
		if _, err := callback.New(p, g, demoVerify, (&shop{}).book, nil); (err == nil) != fine {
			t.Errorf("%q: got %v, want it accepted: %t", name, err, fine)
		}
	}
}

// A status is refused if no answer can have it, or if it is meant to acknowledge and no
// provider would take it so.
func TestStatuses(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	g := guard(t, srv.Client(t), srv.Prefix(t), idempotency.Options{})
	for name, c := range map[string]struct {
		done, later, refused int
		fine                 bool
	}{
		"Done 200, Later 200, Refused 200": {200, 200, 200, true},
		"Done 299, Later 599, Refused 599": {299, 599, 599, true},
		"Done 300":                         {300, 503, 400, false},
		"Done 42":                          {42, 503, 400, false},
		"Later 199":                        {200, 199, 400, false},
		"Refused 600":                      {200, 503, 600, false},
	} {
		p := callback.Alipay()
		p.Done.Status, p.Later.Status, p.Refused.Status = c.done, c.later, c.refused
		if _, err := callback.New(p, g, demoVerify, (&shop{}).book, nil); (err == nil) != c.fine {
			t.Errorf("%s: got %v, want it accepted: %t", name, err, c.fine)
		}
	}
}
