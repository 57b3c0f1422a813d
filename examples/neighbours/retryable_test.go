package neighbours

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// TestEachAttemptCounts: go-retryablehttp sends again what was refused, when it may. What the
// limit denies it does not send again.
func TestEachAttemptCounts(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	partner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer partner.Close()
	_, rdb := redistest.Miniredis(t)
	l, err := limit.New(rdb, "partner", []limit.Policy{limit.FixedWindow{Limit: 3, Window: time.Hour}},
		&limit.Options{Holds: true, Fail: store.FailClosed, Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	client := Retrying(l, time.Minute)
	get := func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, partner.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := client.Do(r)
		if err != nil {
			return err
		}
		if a.StatusCode != http.StatusOK {
			t.Errorf("got %d, want 200", a.StatusCode)
		}
		return a.Body.Close()
	}
	began := time.Now()
	if err := get(); err != nil || asked.Load() != 2 || time.Since(began) < time.Second {
		t.Errorf("refused once: got %v after %v and %d requests, want no error after a second and 2", err, time.Since(began), asked.Load())
	}
	if err := get(); err != nil || asked.Load() != 3 {
		t.Errorf("the third one: got %v and %d requests, want no error and 3", err, asked.Load())
	}
	if err := get(); !errors.Is(err, limit.ErrLimited) || asked.Load() != 3 {
		t.Errorf("over the limit: got %v and %d requests, want ErrLimited and none more", err, asked.Load())
	}
}
