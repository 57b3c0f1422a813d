package unittest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/neaptest"
)

// Ten minutes pass in no time.
func TestLoginsAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shop := open(t, neaptest.New(t), nil)
		neaptest.AssertLimited(t, 3, login, shop)
		time.Sleep(10 * time.Minute)
		neaptest.AssertLimited(t, 3, login, shop)
	})
}

// The process limits logins by itself, and books nothing.
func TestRedisIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		redis := neaptest.New(t)
		shop := open(t, redis, nil)
		redis.Lose()
		neaptest.AssertLimited(t, 3, login, shop)
		expect(t, shop, order(), http.StatusServiceUnavailable)
	})
}

func TestADuplicateOrderIsBookedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var booked neaptest.Work
		shop := open(t, neaptest.New(t), counting(&booked))
		neaptest.AssertRunsOnce(t, &booked, order, shop)
	})
}

func TestACallbackCountsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var counted neaptest.Work
		shop := open(t, neaptest.New(t), counting(&counted))
		neaptest.AssertRunsOnce(t, &counted, payment, shop)
	})
}

// What holds for one instance holds for two.
func TestTwoInstances(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		redis := neaptest.New(t)
		var work neaptest.Work
		one, other := open(t, redis, counting(&work)), open(t, redis, counting(&work))
		neaptest.AssertLimited(t, 3, login, one, other)
		neaptest.AssertRunsOnce(t, &work, order, one, other)
		neaptest.AssertOneAtATime(t, &work, parcel, one, other)
	})
}

// A process loses the lock while it packs, so it must not answer that the parcel is packed.
func TestALockLostAtWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		redis := neaptest.New(t)
		shop := open(t, redis, func(ctx context.Context, _ string) error {
			redis.Lose()
			time.Sleep(time.Minute) // twice the lease
			return ctx.Err()        // as a query does
		})
		expect(t, shop, parcel(), http.StatusInternalServerError)
	})
}

// Each route stands behind a limit, and each POST behind a guard, unless the options list it.
func TestRoutesAreGuarded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		redis := neaptest.New(t)
		shop := open(t, redis, counting(new(neaptest.Work)))
		neaptest.Routes(t, redis, shop, &neaptest.RoutesOptions{
			Request: func(r *http.Request) {
				r.Header.Set("X-Account", "ann")
				switch r.URL.Path {
				case "/login":
					*r = *login()
				case "/callbacks/stripe":
					*r = *payment()
				}
			},
			Unguarded: []string{"POST /login"},
			Unlimited: []string{"POST /callbacks/stripe"},
		}, "POST /login", "POST /orders", "PUT /orders/{id}/parcel", "POST /callbacks/stripe")
	})
}

const secret = "whsec_of_the_tests"

// open starts an instance of the shop.
func open(t *testing.T, redis *neaptest.Redis, do Do) neaptest.Send {
	t.Helper()
	routes, err := Routes(redis.Client(), secret, do)
	if err != nil {
		t.Fatal(err)
	}
	return neaptest.Handler(routes)
}

// counting does nothing but count.
func counting(work *neaptest.Work) Do {
	return func(context.Context, string) error {
		defer work.Begin()()
		return nil
	}
}

// expect sends a request, and fails the test unless the answer has the status.
func expect(t *testing.T, shop neaptest.Send, r *http.Request, want int) {
	t.Helper()
	response, err := shop(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != want {
		t.Errorf("%s %s: got %d, want %d", r.Method, r.URL.Path, response.StatusCode, want)
	}
}

func login() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(url.Values{"user": {"ann"}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

func order() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(`{"item":"phone"}`))
	r.Header.Set("X-Account", "ann")
	r.Header.Set("Idempotency-Key", "order-17")
	return r
}

func parcel() *http.Request {
	r := httptest.NewRequest(http.MethodPut, "/orders/17/parcel", nil)
	r.Header.Set("X-Account", "ann")
	return r
}

// payment is an event as Stripe signs it.
func payment() *http.Request {
	const event = `{"id":"evt_1","type":"charge.succeeded","data":{"object":{"id":"ch_1"}}}`
	now := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(now + "." + event))
	r := httptest.NewRequest(http.MethodPost, "/callbacks/stripe", strings.NewReader(event))
	r.Header.Set("Stripe-Signature", "t="+now+",v1="+hex.EncodeToString(mac.Sum(nil)))
	return r
}
