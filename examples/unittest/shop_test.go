package unittest

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
)

var policies = []limit.Policy{limit.SlidingLog{Limit: 3, Window: 10 * time.Minute}}

// Without Redis, on a clock that jumps while the test sleeps.
func TestLoginIsLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter, err := limit.NewLocal("logins", policies, nil)
		if err != nil {
			t.Fatal(err)
		}
		routes := Routes(limiter)
		for range 3 {
			if got := login(routes, "ann"); got != http.StatusNoContent {
				t.Errorf("login: got %d, want %d", got, http.StatusNoContent)
			}
		}
		if got := login(routes, "ann"); got != http.StatusTooManyRequests {
			t.Errorf("fourth login: got %d, want %d", got, http.StatusTooManyRequests)
		}
		if got := login(routes, "bob"); got != http.StatusNoContent {
			t.Errorf("another user: got %d, want %d", got, http.StatusNoContent)
		}
		time.Sleep(10 * time.Minute)
		if got := login(routes, "ann"); got != http.StatusNoContent {
			t.Errorf("ten minutes later: got %d, want %d", got, http.StatusNoContent)
		}
	})
}

// With the scripts, on an embedded Redis whose clock the test sets.
func TestLoginIsLimitedOnRedis(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	server.ClockTTL(true)
	now := time.Now()
	server.SetTime(now)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { rdb.Close() })

	limiter, err := limit.New(rdb, "logins", policies, &limit.Options{Budget: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	routes := Routes(limiter)
	for i, want := range []int{204, 204, 204, 429} {
		if got := login(routes, "ann"); got != want {
			t.Errorf("login %d: got %d, want %d", i, got, want)
		}
	}
	server.SetTime(now.Add(10 * time.Minute))
	if got := login(routes, "ann"); got != http.StatusNoContent {
		t.Errorf("ten minutes later: got %d, want %d", got, http.StatusNoContent)
	}
}

func login(routes http.Handler, user string) int {
	form := url.Values{"user": {user}}.Encode()
	r := httptest.NewRequest("POST", "/login", strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	routes.ServeHTTP(w, r)
	return w.Code
}
