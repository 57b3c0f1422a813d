package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

// trouble is what befalls the deliveries of an order's events.
type trouble struct {
	name    string
	befalls []string // the first deliveries in turn; the others go well
	// atOnce is how many of each delivery arrive at the same time.
	atOnce int
	// most is how often a handler may run for one event: more often than once
	// only where it failed, or nobody could tell whether it had.
	most int
	// events is how many of an order's it befalls.
	events int
}

// What befalls a delivery, beside what the stage may be asked for.
const (
	forged  = "forged"  // another comes before it, which is not the provider's
	unheard = "unheard" // the provider hangs up while the handler is at work
	away    = "away"    // Redis is away
	restart = "restart" // Redis stops while the handler is at work, and comes back
	lost    = "lost"    // the provider never gets an answer, but for that to its last
)

var troubles = []trouble{
	{"duplicates", []string{forged}, 4, 1, 3},
	{"hung up", []string{unheard}, 1, 1, 3},
	{"fails", []string{fail, fail}, 1, 3, 3},
	{"killed", []string{crash}, 1, 2, 3},
	{"Redis", []string{away, restart}, 1, 2, 1},
	{"answers lost", []string{lost}, 2, 1, 3},
}

// chain is an event, and its deliveries until it is acknowledged.
type chain struct {
	provider *provider
	trouble  *trouble
	delivery delivery
	due      time.Time
	// unclaimed is when another may take over from a process that died, by the
	// clock of a Redis that does not live by the simulator's.
	unclaimed time.Time
	// nothing is to be booked of it.
	nothing bool
	tally   tally
	open    bool
}

// name is what its runs are counted by.
func (c *chain) name() string { return c.delivery.eventID(c.provider.path) }

// tally is a row of the report.
type tally struct{ events, deliveries, runs, bookings, acknowledgements, givenUp int }

// entry is what is booked of it, once; or what must not be: anything of its order.
func (c *chain) entry() entry {
	amount := c.delivery.amount()
	switch {
	case c.nothing:
		amount = 0
	case c.delivery.event > 0:
		amount = -amount
	}
	return entry{order: c.delivery.order, amount: amount, currency: c.provider.currency}
}

// once is how often it is booked.
func (c *chain) once() int {
	if c.nothing {
		return 0
	}
	return 1
}

func (c *chain) last() bool { return c.delivery.attempt == len(c.provider.gaps) }

// befalls is what befalls the next delivery.
func (c *chain) befalls() string {
	all := c.trouble.befalls
	switch {
	case c.delivery.event >= c.trouble.events:
		return ""
	case all[0] == lost && !c.last():
		return lost
	case all[0] != lost && c.delivery.attempt < len(all):
		return all[c.delivery.attempt]
	}
	return ""
}

type simulation struct {
	store     *store
	ledger    ledger
	args      []string // of a process
	processes []*process
	turn      int
	chains    []*chain
}

func newSimulation(ctx context.Context, store *store, dir string) (*simulation, error) {
	file := filepath.Join(dir, "shop.db")
	books, err := open(ctx, file)
	if err != nil {
		return nil, err
	}
	key := filepath.Join(dir, "provider.pem")
	if err := publish(key); err != nil {
		return nil, err
	}
	s := &simulation{
		store: store, ledger: books, processes: make([]*process, 2),
		args: []string{"-serve", store.url, "-db", file, "-key", key, "-lease", store.lease.String()},
	}
	for i := range s.processes {
		if s.processes[i], err = start(ctx, s.args...); err != nil {
			return nil, err
		}
	}
	all := providers()
	for i := range all {
		for t := range troubles {
			for event := range amounts {
				s.chains = append(s.chains, &chain{
					provider: &all[i], trouble: &troubles[t], open: true,
					delivery: delivery{order: fmt.Sprintf("%s-%d", all[i].path, t), event: event},
					due:      began.Add(time.Duration(event) * 45 * time.Minute), // paid, then refunded in part, twice
				})
			}
		}
		s.chains = append(s.chains, besides(&all[i])...)
	}
	return s, nil
}

// besides are the other events of a provider, and those of the first order's
// payment that come when the guard has forgotten it.
func besides(p *provider) (chains []*chain) {
	for _, word := range p.others {
		chains = append(chains, &chain{
			provider: p, trouble: &troubles[0], open: true, nothing: true, due: began,
			delivery: delivery{order: p.path + "-" + word, other: word},
		})
	}
	for _, word := range p.again {
		chains = append(chains, &chain{
			provider: p, trouble: &troubles[0], open: true, due: began.Add(90 * 24 * time.Hour),
			delivery: delivery{order: p.path + "-0", other: word},
		})
	}
	return chains
}

func (s *simulation) close() {
	for _, p := range s.processes {
		p.kill()
	}
	_ = s.ledger.db.Close()
}

// run sends what is due next, until every chain has ended.
func (s *simulation) run(ctx context.Context) error {
	for {
		var next *chain
		for _, c := range s.chains {
			if c.open && (next == nil || c.due.Before(next.due)) {
				next = c
			}
		}
		if next == nil {
			return nil
		}
		s.store.set(next.due)
		if err := errors.Join(s.send(ctx, next), s.idle(ctx)); err != nil {
			return fmt.Errorf("%s, %s, %s: %w", next.provider.name, next.trouble.name, next.delivery.id("event"), err)
		}
	}
}

// idle waits until nothing runs that was begun, and all of it is noted: the clock
// must not end a lease of what is only slow.
func (s *simulation) idle(ctx context.Context) error {
	for _, p := range s.processes {
		if err := p.idle(ctx); err != nil {
			return err
		}
	}
	return nil
}

// send makes the next delivery of a chain, and says when the one after it is due.
func (s *simulation) send(ctx context.Context, c *chain) error {
	if s.store.embedded == nil {
		time.Sleep(time.Until(c.unclaimed))
	}
	c.delivery.at = c.due
	acknowledged, err := s.deliver(ctx, c, c.befalls())
	if err != nil {
		return err
	}
	if acknowledged && c.befalls() != lost {
		c.open = false
		return until(ctx, "an event that was acknowledged, to be so again", func() (bool, error) {
			return s.at(ctx, c, s.other(), "") // which had been on its way
		})
	}
	if c.last() {
		c.open, c.tally.givenUp = false, 1
		return nil
	}
	c.due = c.due.Add(c.provider.gaps[c.delivery.attempt])
	c.delivery.attempt++
	return nil
}

// other is the process whose turn it is.
func (s *simulation) other() int {
	s.turn++
	return s.turn % len(s.processes)
}

// deliver has happen to a delivery what befalls it.
func (s *simulation) deliver(ctx context.Context, c *chain, befalls string) (acknowledged bool, err error) {
	i := s.other()
	switch befalls {
	case forged:
		header, body := forge(c.provider.send(c.delivery))
		got, err := s.processes[i].do(ctx, "POST", "/callbacks/"+c.provider.path, header, body)
		if err != nil || got.status != 401 || c.provider.acknowledged(got.status, got.body) {
			return false, errors.Join(err, fmt.Errorf("who was not the provider got %+v", got))
		}
	case fail:
		return s.at(ctx, c, i, fail)
	case crash:
		if err := s.crash(ctx, c, i); err != nil {
			return false, err
		}
		s.processes[i].buried()
		c.unclaimed = time.Now().Add(s.store.lease)
		s.processes[i], err = start(ctx, s.args...)
		return false, err
	case unheard, restart:
		return s.held(ctx, c, i, befalls)
	case away:
		s.store.stop()
		acknowledged, err = s.at(ctx, c, i, "")
		return acknowledged, errors.Join(err, s.store.start(ctx))
	}
	if !c.last() { // which may come while the lease of a process that was killed lasts
		return s.together(ctx, c)
	}
	err = until(ctx, "an acknowledgement", func() (bool, error) {
		acknowledged, err = s.together(ctx, c)
		return acknowledged, err
	})
	return acknowledged, err
}

// crash has a process killed by a delivery.
func (s *simulation) crash(ctx context.Context, c *chain, i int) error {
	return until(ctx, "the kill", func() (bool, error) {
		acknowledged, err := s.at(ctx, c, i, crash)
		if acknowledged {
			return false, errors.Join(err, errors.New("who was to be killed has acknowledged"))
		}
		return err != nil, ctx.Err()
	})
}

// held does something while the handler is at work.
func (s *simulation) held(ctx context.Context, c *chain, i int, befalls string) (acknowledged bool, err error) {
	p := s.processes[i]
	patience, hangUp := context.WithCancel(ctx)
	defer hangUp()
	ended := make(chan error, 1)
	err = until(ctx, "the handler", func() (bool, error) {
		go func() {
			var err error
			acknowledged, err = s.at(patience, c, i, hold)
			ended <- err
		}()
		select {
		case <-p.Lines:
			return true, nil
		case err := <-ended:
			if acknowledged {
				return false, errors.Join(err, errors.New("it was not handled"))
			}
			return false, err
		}
	})
	if err != nil {
		return false, err
	}
	if befalls == restart {
		s.store.stop()
		err = errors.Join(p.proceed(), <-ended, s.store.start(ctx))
	} else {
		hangUp()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return acknowledged, fmt.Errorf("who hung up was answered: %w", err)
		}
		err = p.proceed()
	}
	return acknowledged, errors.Join(err, p.idle(ctx))
}

// together has a delivery arrive at all processes at once.
func (s *simulation) together(ctx context.Context, c *chain) (bool, error) {
	acknowledged, errs := make([]bool, c.trouble.atOnce), make([]error, c.trouble.atOnce)
	var wg sync.WaitGroup
	for n := range c.trouble.atOnce {
		i := s.other()
		wg.Go(func() { acknowledged[n], errs[n] = s.at(ctx, c, i, "") })
	}
	wg.Wait()
	any := false
	for _, is := range acknowledged {
		any = any || is
	}
	return any, errors.Join(errs...)
}

// at makes a delivery at one process. What is acknowledged must be booked by then,
// if it is to be.
func (s *simulation) at(ctx context.Context, c *chain, i int, stage string) (acknowledged bool, err error) {
	header, body := c.provider.send(c.delivery)
	header.Set(chainField, c.name())
	if stage != "" {
		header.Set(stageField, stage)
	}
	c.count(func(t *tally) { t.deliveries++ })
	got, err := s.processes[i].do(ctx, "POST", "/callbacks/"+c.provider.path, header, body)
	if err != nil || !c.provider.acknowledged(got.status, got.body) {
		return false, err
	}
	c.count(func(t *tally) { t.acknowledgements++ })
	_, bookings, err := s.ledger.counts(ctx, c.name(), c.entry())
	if err == nil && bookings < c.once() {
		err = errors.New("it was acknowledged and is not booked")
	}
	return true, err
}

var counting sync.Mutex

func (c *chain) count(add func(*tally)) {
	counting.Lock()
	defer counting.Unlock()
	add(&c.tally)
}
