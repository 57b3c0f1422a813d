package main

import (
	"context"
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"
)

// promises are what becomes of a request that is no plain repetition, behind
// the middleware, over HTTP.
type promises struct {
	beside   int64 // runs of two duplicates at once on two instances
	besideIs int   // status of the second

	otherBody, otherUser         int  // status, where the key was used before
	bodyLeaks, userLeaks, cookie bool // the first's answer is repeated, its cookie too

	full     int   // status, where Redis is full when the handler has run
	fullRuns int64 // with one repetition
}

func (s *server) probe(ctx context.Context, m middleware, e env) (p promises, err error) {
	if err := s.empty(ctx, e.db); err != nil {
		return p, err
	}
	var sites [2]*site
	for i := range sites {
		if sites[i], err = newSite(e, m); err != nil {
			return p, err
		}
		defer func() { err = errors.Join(err, sites[i].close()) }()
	}
	if err := p.together(sites[0], sites[1]); err != nil {
		return p, err
	}
	if err := p.reused(sites[0]); err != nil {
		return p, err
	}
	return p, p.outOfMemory(ctx, s, sites[0])
}

// patience is how long a duplicate may take to be answered or to run.
const patience = 10 * time.Second

// together sends a request to one instance and, while that runs, again to the
// other.
func (p *promises) together(a, b *site) error {
	running, released := make(chan struct{}, 2), make(chan struct{})
	for _, one := range []*site{a, b} {
		one.work = func(*fiber.Ctx) {
			running <- struct{}{}
			<-released
		}
		defer func() { one.work = func(*fiber.Ctx) {} }()
	}
	type answered struct {
		status int
		err    error
	}
	key, ran := operation(), a.runs.Load()+b.runs.Load()
	ask := func(at *site) chan answered {
		heard := make(chan answered, 1)
		go func() {
			r, err := at.post(key, user, orderBody)
			heard <- answered{r.status, err}
		}()
		return heard
	}
	first := ask(a)
	if !within(running) {
		close(released)
		return errors.Join(errNotRan, (<-first).err)
	}
	second := ask(b)
	var got answered
	select {
	case <-running:
		close(released)
		got = <-second
	case got = <-second:
		close(released)
	case <-time.After(patience):
		close(released)
		got = <-second
	}
	one := <-first
	p.beside, p.besideIs = a.runs.Load()+b.runs.Load()-ran, got.status
	return errors.Join(one.err, got.err)
}

func within(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-time.After(patience):
		return false
	}
}

// reused sends a key again: as it was, with another body, by another user.
func (p *promises) reused(s *site) error {
	key := operation()
	first, err := s.post(key, user, orderBody)
	if err != nil {
		return err
	}
	again, err1 := s.post(key, user, orderBody)
	body, err2 := s.post(key, user, `{"item":"a yacht","quantity":1,"amount":"4990000.00","currency":"EUR"}`)
	other, err3 := s.post(key, "mallory", orderBody)
	p.cookie = again.cookie != ""
	p.otherBody, p.bodyLeaks = body.status, body.location == first.location
	p.otherUser, p.userLeaks = other.status, other.location == first.location
	if again.location != first.location {
		err = errRan
	}
	return errors.Join(err, err1, err2, err3)
}

// outOfMemory fills the server while the handler runs, and repeats the request
// when it has room again.
func (p *promises) outOfMemory(ctx context.Context, srv *server, s *site) (err error) {
	var filled error
	s.work = func(*fiber.Ctx) { filled = srv.admin.ConfigSet(ctx, "maxmemory", "1").Err() }
	ran, key := s.runs.Load(), operation()
	r, err := s.post(key, user, orderBody)
	s.work = func(*fiber.Ctx) {}
	err = errors.Join(err, filled, srv.admin.ConfigSet(ctx, "maxmemory", "0").Err())
	if err != nil {
		return err
	}
	_, err = s.post(key, user, orderBody)
	p.full, p.fullRuns = r.status, s.runs.Load()-ran
	return err
}
