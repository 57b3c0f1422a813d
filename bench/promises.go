package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// try finds out one promise, on two instances behind the same middleware.
type try = func(ctx context.Context, s *server, a, b *site) (string, error)

// promises are what becomes of a request that is no plain repetition, over HTTP.
var promises = []struct {
	text string
	try  try
}{
	{"two duplicates at once, on two instances", tryDuplicates},
	{"the key again, with another body", tryAgain(user, otherBody, answerOf)},
	{"the key again, by another user", tryAgain("mallory", orderBody, answerOf)},
	{"the first's Set-Cookie in a replay", tryAgain(user, orderBody, cookieOf)},
	{"Redis is full when the handler has run, and the request is repeated once", tryOutOfMemory},
}

const otherBody = `{"item":"a yacht","quantity":1,"amount":"4990000.00","currency":"EUR"}`

func (s *server) tryPromises(ctx context.Context, c contestant, db int) (outcomes []string, err error) {
	open := func(e *env) (*site, error) { return newSite(ctx, e, c.middleware) }
	err = instances(s, c, db, 2, open, func(_ *env, sites []*site) error {
		for _, p := range promises {
			outcome, err := p.try(ctx, s, sites[0], sites[1])
			if err != nil {
				return fmt.Errorf("%s: %w", p.text, err)
			}
			outcomes = append(outcomes, outcome)
		}
		return nil
	})
	return outcomes, err
}

// patience is how long a duplicate may take to be answered or to run.
const patience = 10 * time.Second

// tryDuplicates sends a request to one instance and, while that runs, again to the
// other.
func tryDuplicates(_ context.Context, _ *server, a, b *site) (string, error) {
	running, released := make(chan struct{}, 2), make(chan struct{})
	work := func() {
		running <- struct{}{}
		<-released
	}
	a.work, b.work = work, work
	defer func() { a.work, b.work = noWork, noWork }()
	key, ran := newKey(), a.runs.Load()+b.runs.Load()
	var both sync.WaitGroup
	var replies [2]reply
	var faults [2]error
	for i, s := range []*site{a, b} {
		answered := make(chan struct{})
		both.Go(func() {
			defer close(answered)
			replies[i], faults[i] = s.reply(key, user, orderBody)
		})
		select {
		case <-running:
		case <-answered:
		case <-time.After(patience):
		}
	}
	close(released)
	both.Wait()
	ran = a.runs.Load() + b.runs.Load() - ran
	return fmt.Sprintf("%s; the second is answered %d", runs(ran), replies[1].status), errors.Join(faults[:]...)
}

// tryAgain sends a key twice, the second time by another user or with another body.
func tryAgain(user2, body2 string, outcome func(first, again reply) (string, error)) try {
	return func(_ context.Context, _ *server, a, _ *site) (string, error) {
		key := newKey()
		first, err := a.reply(key, user, orderBody)
		again, fault := a.reply(key, user2, body2)
		if err := errors.Join(err, fault); err != nil {
			return "", err
		}
		return outcome(first, again)
	}
}

func answerOf(first, again reply) (string, error) {
	if again.location == first.location {
		return fmt.Sprintf("**the first's answer** (%d)", again.status), nil
	}
	return strconv.Itoa(again.status), nil
}

func cookieOf(first, again reply) (string, error) {
	if again.location != first.location {
		return "", errRun
	}
	return yes(again.cookie != ""), nil
}

// tryOutOfMemory fills the server while the handler runs, and repeats the request when
// it has room again.
func tryOutOfMemory(ctx context.Context, s *server, a, _ *site) (string, error) {
	var filled error
	key, ran := newKey(), a.runs.Load()
	a.work = func() { filled = s.admin.ConfigSet(ctx, "maxmemory", "1").Err() }
	first, err := a.reply(key, user, orderBody)
	a.work = noWork
	err = errors.Join(err, filled, s.admin.ConfigSet(ctx, "maxmemory", "0").Err())
	if err != nil {
		return "", err
	}
	_, err = a.reply(key, user, orderBody)
	return fmt.Sprintf("%s; the first is answered %d", runs(a.runs.Load()-ran), first.status), err
}

func runs(n int64) string {
	if n == 1 {
		return "runs once"
	}
	return fmt.Sprintf("**runs %d times**", n)
}
