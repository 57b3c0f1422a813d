package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"
)

const (
	pauses = 5 * time.Second        // for how long the partner wants no requests, once
	onWay  = 500 * time.Millisecond // a request that came so soon after that was sent before
)

// partner is somebody's API. It counts its requests in a window that slides.
type partner struct {
	*httptest.Server

	mu                     sync.Mutex
	began, paused          time.Time
	pausesAt               time.Duration
	recent                 []time.Time // the requests that it has answered in the last window
	served, refused, early int
	most                   int // in any window
}

func newPartner(pausesAt time.Duration) *partner {
	p := &partner{pausesAt: pausesAt}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status, retryAfter := p.answer(time.Now())
		if retryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
		}
		w.WriteHeader(status)
	}))
	return p
}

// answer counts a request that has come.
func (p *partner) answer(now time.Time) (status int, retryAfter time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.began.IsZero() {
		p.began = now
	}
	if since := now.Sub(p.paused); !p.paused.IsZero() && since > onWay && since < pauses {
		p.early++
	}
	for len(p.recent) > 0 && now.Sub(p.recent[0]) >= window {
		p.recent = p.recent[1:]
	}
	switch {
	case p.paused.IsZero() && now.Sub(p.began) >= p.pausesAt:
		p.paused = now
		return http.StatusTooManyRequests, pauses
	case len(p.recent) >= allowed:
		p.refused++
		return http.StatusTooManyRequests, time.Second
	}
	p.recent = append(p.recent, now)
	p.served, p.most = p.served+1, max(p.most, len(p.recent))
	return http.StatusOK, 0
}

func (p *partner) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("the partner answered %d requests, %d in any %v at the most, and refused %d; after its pause of %v, %d came too early",
		p.served, p.most, window, p.refused, pauses, p.early)
}

// judge says what was wrong.
func (p *partner) judge() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.served == 0:
		return errors.New("the partner was not asked")
	case p.paused.IsZero():
		return errors.New("the partner was not asked for long enough to pause")
	case p.refused > 0:
		return fmt.Errorf("the partner had to refuse %d requests", p.refused)
	case p.early > 0:
		return fmt.Errorf("%d requests came while the partner wanted none", p.early)
	}
	return nil
}
