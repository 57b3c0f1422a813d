package console

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/stock"
)

// look looks up one subject, key or item.
type look func(ctx context.Context, key string) (any, error)

// query names what is looked up. It is sent in the body, since addresses are logged.
type query struct {
	id
	Key string `json:"key"`
}

const maxBody = 64 << 10

// lookUp answers what a primitive knows of one subject, key or item.
func (c *console) lookUp(w http.ResponseWriter, r *http.Request) {
	var q query
	if !decode(w, r, &q) {
		return
	}
	of, is := c.things.all[q.id]
	if !is {
		answer(w, http.StatusNotFound, failure{"unknown primitive"})
		return
	}
	found, err := of.look(r.Context(), q.Key)
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, http.StatusOK, found)
}

// decode reads a request of the page, and answers any other.
func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		answer(w, http.StatusMethodNotAllowed, failure{"method"})
		return false
	}
	if typ, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); typ != "application/json" {
		answer(w, http.StatusUnsupportedMediaType, failure{"type"})
		return false
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if d.Decode(into) != nil {
		answer(w, http.StatusBadRequest, failure{"request"})
		return false
	}
	return true
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // of texts and numbers alone; the client has gone, or gets it
}

// What is found, as the page is told of it. Durations are in milliseconds.
type (
	foundLimit struct {
		States   []foundState `json:"states"`
		Degraded bool         `json:"degraded"` // decided without Redis
		CanBan   bool         `json:"canBan"`
		Banned   int64        `json:"banned"` // for how long
		// Unknown names the error if Redis did not say whether the subject is banned.
		Unknown string `json:"unknown,omitempty"`
	}
	foundState struct {
		Policy     string `json:"policy"`
		Unit       string `json:"unit"`
		Shadow     bool   `json:"shadow"`
		Allowed    bool   `json:"allowed"`
		Banned     bool   `json:"banned"`
		Limit      int64  `json:"limit"`
		Remaining  int64  `json:"remaining"`
		RetryAfter int64  `json:"retryAfter"`
		ResetAfter int64  `json:"resetAfter"`
	}
	foundInFlight struct {
		InFlight int64 `json:"inFlight"`
	}
	foundLock struct {
		Held  bool   `json:"held"`
		Owner string `json:"owner"`
		Holds int    `json:"holds"`
		Fence int64  `json:"fence"`
		Lease int64  `json:"lease"`
	}
	foundRecord struct {
		State   idempotency.State `json:"state"`
		Attempt int64             `json:"attempt"`
		Fence   int64             `json:"fence"`
		Lease   int64             `json:"lease"`
		Expires int64             `json:"expires"`
		Size    int               `json:"size"`
	}
	foundLevel struct {
		Units    int64 `json:"units"`
		Left     int64 `json:"left"`
		Held     int64 `json:"held"`
		Sold     int64 `json:"sold"`
		Lifetime int64 `json:"lifetime"`
	}
)

// lookLimit tells what the next request of the subject would find. A limiter whose policies have no Ban
// says so, and asks Redis nothing about one.
func lookLimit(l *limit.Limiter) look {
	return func(ctx context.Context, subject string) (any, error) {
		d, err := l.Peek(ctx, subject)
		if err != nil {
			return nil, err
		}
		found := foundLimit{States: []foundState{}, Degraded: d.Degraded}
		for s := range d.States() {
			found.States = append(found.States, foundState{
				Policy: s.Policy, Unit: s.Unit, Shadow: s.Shadow, Allowed: s.Allowed, Banned: s.Banned, Limit: s.Limit,
				Remaining: s.Remaining, RetryAfter: s.RetryAfter.Milliseconds(), ResetAfter: s.ResetAfter.Milliseconds(),
			})
		}
		left, err := l.Banned(ctx, subject)
		if errors.Is(err, limit.ErrNoBan) {
			return found, nil
		}
		found.CanBan, found.Banned = true, left.Milliseconds()
		if err != nil {
			found.Unknown, _ = nameOfError(err)
		}
		return found, nil
	}
}

func lookInFlight(c *inflight.Limiter) look {
	return func(ctx context.Context, subject string) (any, error) {
		n, err := c.InFlight(ctx, subject)
		return foundInFlight{n}, err
	}
}

func lookLock(l *lock.Locker) look {
	return func(ctx context.Context, key string) (any, error) {
		s, err := l.Inspect(ctx, key)
		return foundLock{Held: s.Held, Owner: s.Owner, Holds: s.Holds, Fence: s.Fence, Lease: s.Lease.Milliseconds()}, err
	}
}

func lookRecord(g *idempotency.Guard) look {
	return func(ctx context.Context, key string) (any, error) {
		r, err := g.Inspect(ctx, key)
		return foundRecord{
			State: r.State, Attempt: r.Attempt, Fence: r.Fence, Size: r.Size,
			Lease: r.Lease.Milliseconds(), Expires: max(r.Expires, -time.Millisecond).Milliseconds(),
		}, err
	}
}

func lookLevel(s *stock.Stock) look {
	return func(ctx context.Context, item string) (any, error) {
		l, err := s.Left(ctx, item)
		return foundLevel{Units: l.Units, Left: l.Left, Held: l.Held, Sold: l.Sold, Lifetime: l.Lifetime.Milliseconds()}, err
	}
}
