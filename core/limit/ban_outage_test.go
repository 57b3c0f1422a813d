package limit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// guesses are a policy that bans for half an hour at the first denial.
var guesses = limit.WithBan(limit.FixedWindow{Name: "guesses", Limit: 5, Window: time.Minute}, limit.Ban{After: 1, Within: time.Hour, For: 30 * time.Minute, Max: 2 * time.Hour})

// deciding are the options with which a process decides without Redis.
var deciding = map[string]limit.Options{
	"FailLocal":             {Fail: store.FailLocal},
	"FailLocal, one of two": {Fail: store.FailLocal, Instances: 2},
	"FailLocal, remembered": {Fail: store.FailLocal, RememberDenials: 2 * time.Millisecond},
	"FailOpen":              {Fail: store.FailOpen},
}

// sightings are the ways by which a process learns of a ban. elsewhere is the limiter of
// another process.
var sightings = map[string]func(ctx context.Context, t *testing.T, l, elsewhere *limit.Limiter){
	"Ban": func(ctx context.Context, t *testing.T, l, _ *limit.Limiter) {
		t.Helper()
		must(0, l.Ban(ctx, "s", 30*time.Minute))(t)
	},
	"the denial that begins it": func(ctx context.Context, t *testing.T, l, _ *limit.Limiter) {
		t.Helper()
		take(t, l, "s", 5)
		must(l.Take(ctx, "s"))(t)
	},
	"a denial":    heard(func(ctx context.Context, l *limit.Limiter) error { return second(l.Take(ctx, "s")) }),
	"a cost of 0": heard(func(ctx context.Context, l *limit.Limiter) error { return second(l.TakeN(ctx, "s", 0)) }),
	"Peek":        heard(func(ctx context.Context, l *limit.Limiter) error { return second(l.Peek(ctx, "s")) }),
	"Banned":      heard(func(ctx context.Context, l *limit.Limiter) error { return second(l.Banned(ctx, "s")) }),
	"WaitFor":     heard(func(ctx context.Context, l *limit.Limiter) error { return second(l.WaitFor(ctx, "s", 1, 0)) }),
	"All": heard(func(ctx context.Context, l *limit.Limiter) error {
		return second(limit.All(ctx, limit.Ask{Limiter: l, Subject: "other"}, limit.Ask{Limiter: l, Subject: "s"}))
	}),
	"With": heard(func(ctx context.Context, l *limit.Limiter) error {
		of, err := l.With(limit.FixedWindow{Name: "beside", Limit: 10, Window: time.Hour}, guesses)
		if err != nil {
			return err
		}
		return second(of.Take(ctx, "s"))
	}),
	"before a Reset": heard(func(ctx context.Context, l *limit.Limiter) error {
		if _, err := l.Take(ctx, "s"); err != nil {
			return err
		}
		return second(l.Reset(ctx, "s"))
	}),
}

// heard returns a sighting of a ban that another process makes.
func heard(by func(ctx context.Context, l *limit.Limiter) error) func(ctx context.Context, t *testing.T, l, elsewhere *limit.Limiter) {
	return func(ctx context.Context, t *testing.T, l, elsewhere *limit.Limiter) {
		t.Helper()
		must(0, elsewhere.Ban(ctx, "s", 30*time.Minute))(t)
		must(0, by(ctx, l))(t)
	}
}

// TestAnOutageLiftsNoBan: a ban that a process has seen holds, however it has seen it and
// however it decides without Redis: alone and in a set, and for the limiters of With. For
// other subjects nothing changes.
func TestAnOutageLiftsNoBan(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	for mode, opts := range deciding {
		opts.Budget = 5 * time.Second
		for sighting, see := range sightings {
			t.Run(mode+"/"+sighting, func(t *testing.T) {
				t.Parallel()
				prefix := redistest.Prefix(t)
				rdb := &redistest.CutClient{Client: srv.Client(t)}
				l := must(limit.New(storetest.At(t, rdb, prefix), "n", []limit.Policy{guesses}, &opts))(t)
				elsewhere := must(limit.New(storetest.At(t, srv.Client(t), prefix), "n", []limit.Policy{guesses}, closed(patience)))(t)
				set := must(l.With(limit.FixedWindow{Name: "beside", Limit: 10, Window: time.Hour}, guesses))(t)
				began := time.Now()
				see(t.Context(), t, l, elsewhere)
				known := time.Now()
				rdb.Cut("refused")
				for name, ask := range map[string]func(subject string) (limit.Decision, error){
					"Take":       func(subject string) (limit.Decision, error) { return l.Take(t.Context(), subject) },
					"Peek":       func(subject string) (limit.Decision, error) { return l.Peek(t.Context(), subject) },
					"TakeN of 0": func(subject string) (limit.Decision, error) { return l.TakeN(t.Context(), subject, 0) },
					"WaitFor":    func(subject string) (limit.Decision, error) { return l.WaitFor(t.Context(), subject, 1, 0) },
					"With":       func(subject string) (limit.Decision, error) { return set.Take(t.Context(), subject) },
					"All": func(subject string) (limit.Decision, error) {
						j, err := limit.All(t.Context(), limit.Ask{Limiter: l, Subject: "one more"}, limit.Ask{Limiter: set, Subject: subject})
						return j.Decisions[1], err
					},
				} {
					asked := time.Now()
					d, err := ask("s")
					// the end is by the clock of Redis in whole milliseconds, as it was at the latest when the process heard of it
					least, most := 30*time.Minute-time.Since(began)-time.Millisecond, 30*time.Minute-asked.Sub(known)+time.Millisecond
					remembered := !d.Degraded && opts.RememberDenials > 0
					if err != nil || d.Allowed || !remembered && d.Cause == nil || !d.Banned() || d.Policy != "guesses" || d.RetryAfter < least || d.RetryAfter > most {
						t.Errorf("%s: got %+v, %v, want it degraded and banned for %v to %v", name, d, err, least, most)
					}
					if d, err := ask("without a ban: " + name); err != nil || !d.Allowed || !d.Degraded || d.Banned() {
						t.Errorf("%s without a ban: got %+v, %v, want it degraded and allowed", name, d, err)
					}
				}
			})
		}
	}
}

// TestABanEndsInAnOutage at its time and not later, or when it is lifted. When Redis is
// back, it decides alone. The lines happen one after the other.
func TestABanEndsInAnOutage(t *testing.T) {
	t.Parallel()
	type world struct {
		l, elsewhere *limit.Limiter
		rdb          *redistest.CutClient
		ctx          context.Context
	}
	peek := func(w *world) error { return second(w.l.Peek(w.ctx, "s")) }
	ban := func(w *world) error { return w.elsewhere.Ban(w.ctx, "s", time.Minute) }
	sleep := func(d time.Duration) func(*world) error {
		return func(*world) error { time.Sleep(d); return nil }
	}
	cut := func(w *world) error { w.rdb.Cut("refused"); return nil }
	mend := func(w *world) error {
		w.rdb.Mend()
		for w.l.Stats().Open || must(w.l.Peek(w.ctx, "another"))(t).Degraded {
			time.Sleep(100 * time.Millisecond)
		}
		return nil
	}
	fails := func(f func(w *world) error) func(*world) error {
		return func(w *world) error {
			if f(w) == nil {
				return fmt.Errorf("got no error, want one: Redis is away")
			}
			return nil
		}
	}
	guess := func(w *world) error {
		for range 6 {
			if err := second(w.l.Take(w.ctx, "s")); err != nil {
				return err
			}
		}
		return nil
	}
	unban := func(w *world) error { return second(w.l.Unban(w.ctx, "s")) }
	for name, c := range map[string]struct {
		lines  []func(w *world) error
		banned bool
		local  bool // only store.FailLocal counts denials
	}{
		"a millisecond before its end": {[]func(*world) error{ban, peek, cut, sleep(time.Minute - time.Millisecond)}, true, false},
		"at its end":                   {[]func(*world) error{ban, peek, cut, sleep(time.Minute)}, false, false},
		"it was seen later":            {[]func(*world) error{ban, sleep(30 * time.Second), peek, cut, sleep(30 * time.Second)}, false, false},
		"it was not seen":              {[]func(*world) error{peek, ban, cut}, false, false},
		"lifted here before":           {[]func(*world) error{ban, peek, unban, cut}, false, false},
		"lifted here within":           {[]func(*world) error{ban, peek, cut, fails(unban)}, false, false},
		"lifted elsewhere, and heard": {[]func(*world) error{
			ban, peek, func(w *world) error { return second(w.elsewhere.Unban(w.ctx, "s")) }, peek, cut,
		}, false, false},
		"made here, lifted elsewhere, and heard": {[]func(*world) error{
			func(w *world) error { return w.l.Ban(w.ctx, "s", time.Minute) },
			func(w *world) error { return second(w.elsewhere.Unban(w.ctx, "s")) }, peek, cut,
		}, false, false},
		"lifted elsewhere, and not heard": {[]func(*world) error{
			ban, peek, func(w *world) error { return second(w.elsewhere.Unban(w.ctx, "s")) }, cut,
		}, true, false},
		"shortened elsewhere": {[]func(*world) error{
			ban, peek, func(w *world) error { return w.elsewhere.Ban(w.ctx, "s", time.Second) }, peek, cut, sleep(time.Second),
		}, false, false},
		"shortened here": {[]func(*world) error{
			ban, peek, func(w *world) error { return w.l.Ban(w.ctx, "s", time.Second) }, cut, sleep(time.Second),
		}, false, false},
		"lifted, and seen again": {[]func(*world) error{ban, peek, unban, ban, peek, cut}, true, false},
		"a second outage":        {[]func(*world) error{ban, peek, cut, peek, mend, cut}, true, false},
		"Redis came back empty": {[]func(*world) error{
			ban, peek, cut, peek, mend, func(w *world) error { return w.rdb.FlushAll(w.ctx).Err() }, peek, cut,
		}, false, false},
		"made within, and Redis came back": {[]func(*world) error{
			cut, fails(func(w *world) error { return w.l.Ban(w.ctx, "s", time.Hour) }), mend, peek, cut,
		}, true, false},
		"begun within, and Redis came back": {[]func(*world) error{
			cut, guess, mend, peek, cut,
		}, true, true},
		"made within, and longer than that of Redis": {[]func(*world) error{
			cut, fails(func(w *world) error { return w.l.Ban(w.ctx, "s", time.Hour) }), mend, ban, peek, cut, sleep(2 * time.Minute),
		}, true, false},
		"begun within, after one that was seen, and Redis came back": {[]func(*world) error{
			ban, peek, cut, sleep(time.Minute), guess, mend, peek, cut,
		}, true, true},
		"begun within, after one that was seen twice": {[]func(*world) error{
			func(w *world) error { return w.elsewhere.Ban(w.ctx, "s", 30*time.Minute) },
			peek, sleep(29 * time.Minute), peek, cut, sleep(time.Minute), guess, sleep(time.Hour - time.Second), // it is twice as long
		}, true, true},
	} {
		for mode, opts := range deciding {
			if c.local && opts.Fail == store.FailOpen {
				continue
			}
			t.Run(name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					m := redistest.Bubble(t)
					w := &world{ctx: t.Context(), rdb: &redistest.CutClient{Client: redistest.BubbleClient(t, m)}}
					w.l = must(limit.New(must(store.Open(w.rdb, nil))(t), "n", []limit.Policy{guesses}, &opts))(t)
					w.elsewhere = must(limit.New(redistest.BubbleClient(t, m), "n", []limit.Policy{guesses}, closed(time.Minute)))(t)
					for i, line := range c.lines {
						if err := line(w); err != nil {
							t.Fatalf("line %d: got %v, want no error", i, err)
						}
					}
					peeked, d := must(w.l.Peek(t.Context(), "s"))(t), must(w.l.Take(t.Context(), "s"))(t) // a take may begin a ban
					if !d.Degraded || peeked.Banned() != c.banned || d.Banned() != c.banned || d.Allowed == c.banned {
						t.Errorf("got %+v, and before it %+v, want them degraded and banned %t", d, peeked, c.banned)
					}
				})
			})
		}
	}
}

// TestRedisDecidesAloneAgain: what a process knew of bans in an outage is nothing to
// Redis. The server is a real one that is killed and comes back empty.
func TestRedisDecidesAloneAgain(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	l := must(limit.New(storetest.At(t, srv.Client(t), redistest.Prefix(t)), "n", []limit.Policy{guesses}, nil))(t)
	redistest.Await(t, time.Minute, "Redis to decide", func() bool { return !must(l.Peek(t.Context(), "s"))(t).Degraded })
	redistest.Await(t, time.Minute, "the ban", func() bool { return l.Ban(t.Context(), "s", time.Hour) == nil })
	srv.Stop(t)
	for i := range 6 {
		if d := must(l.Take(t.Context(), "s"))(t); d.Allowed || !d.Degraded || !d.Banned() {
			t.Errorf("guess %d while Redis is down: got %+v, want it degraded and banned", i+1, d)
		}
	}
	srv.Start(t)
	redistest.Await(t, time.Minute, "Redis to decide again", func() bool {
		d := must(l.Take(t.Context(), "s"))(t)
		if d.Degraded != d.Banned() {
			t.Errorf("while Redis comes back: got %+v, want a ban without Redis and none of the empty Redis", d)
		}
		return !d.Degraded
	})
}

// TestABanInShadowChangesNoAnswer in an outage either.
func TestABanInShadowChangesNoAnswer(t *testing.T) {
	t.Parallel()
	for mode, opts := range deciding {
		synctest.Test(t, func(t *testing.T) {
			rdb := &redistest.CutClient{Client: redistest.BubbleClient(t, redistest.Bubble(t))}
			l := must(limit.New(rdb, "n", []limit.Policy{limit.Shadow(guesses), limit.FixedWindow{Name: "plain", Limit: 100, Window: time.Hour}}, &opts))(t)
			must(0, l.Ban(t.Context(), "s", time.Hour))(t)
			must(l.Take(t.Context(), "s"))(t)
			rdb.Cut("refused")
			d := must(l.Take(t.Context(), "s"))(t)
			if !d.Allowed || !d.Degraded || d.Banned() || d.RetryAfter != 0 || (opts.Fail == store.FailOpen) != (d.Policy == "") {
				t.Errorf("%s: got %+v, want it degraded and allowed, with figures unless FailOpen admits it", mode, d)
			}
			for s := range d.States() {
				if s.Shadow && !s.Banned {
					t.Errorf("%s: the shadow: got %+v, want its ban reported", mode, s)
				}
			}
		})
	}
}

// TestAFloodLiftsNoBan: subjects without a ban do not displace bans, and the bans are
// bounded too.
func TestAFloodLiftsNoBan(t *testing.T) {
	t.Parallel()
	floods(t, guesses, 1)
	denied := limit.WithBan(limit.FixedWindow{Limit: 1, Window: time.Minute}, limit.Ban{After: 2, Within: time.Hour, For: time.Hour})
	floods(t, denied, 2) // the second is denied, and begins no ban
}

// TestNothingThatDoesNotLastDisplacesABan that a process has seen: each of many subjects
// has its ban lifted, or has a ban that ends.
func TestNothingThatDoesNotLastDisplacesABan(t *testing.T) {
	t.Parallel()
	const most = 40
	for mode, opts := range deciding {
		for name, other := range map[string]func(ctx context.Context, l *limit.Limiter, subject string) error{
			"an Unban without a ban": func(ctx context.Context, l *limit.Limiter, subject string) error {
				return second(l.Unban(ctx, subject))
			},
			"a ban and an Unban": func(ctx context.Context, l *limit.Limiter, subject string) error {
				return errors.Join(l.Ban(ctx, subject, time.Hour), second(l.Unban(ctx, subject)))
			},
			"a ban that has ended": func(ctx context.Context, l *limit.Limiter, subject string) error {
				err := errors.Join(l.Ban(ctx, subject, time.Millisecond), second(l.Peek(ctx, subject)))
				time.Sleep(2 * time.Millisecond)
				return err
			},
			"a ban that ends sooner": func(ctx context.Context, l *limit.Limiter, subject string) error {
				return errors.Join(l.Ban(ctx, subject, time.Minute), second(l.Peek(ctx, subject)))
			},
		} {
			for _, within := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/within the outage %t", mode, name, within), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						own := opts
						own.MaxLocal = most
						rdb := &redistest.CutClient{Client: redistest.BubbleClient(t, redistest.Bubble(t))}
						l := must(limit.New(rdb, "n", []limit.Policy{guesses}, &own))(t)
						must(0, l.Ban(t.Context(), "s", time.Hour))(t)
						must(l.Take(t.Context(), "s"))(t)
						if within {
							rdb.Cut("refused")
						}
						for i := range 2 * most {
							if err := other(t.Context(), l, fmt.Sprint(i)); err != nil && !within {
								t.Fatal(err)
							}
						}
						rdb.Cut("refused")
						if d := must(l.Peek(t.Context(), "s"))(t); d.Allowed || !d.Banned() || !d.Degraded {
							t.Errorf("got %+v, want it degraded and banned", d)
						}
					})
				})
			}
		}
	}
}

// floods has each of many subjects ask that many times.
func floods(t *testing.T, policy limit.Policy, asks int) {
	t.Helper()
	const most = 100
	for mode, opts := range deciding {
		synctest.Test(t, func(t *testing.T) {
			opts.MaxLocal = most
			rdb := &redistest.CutClient{Client: redistest.BubbleClient(t, redistest.Bubble(t))}
			l := must(limit.New(rdb, "n", []limit.Policy{policy}, &opts))(t)
			banned := func(subject string, want bool) {
				t.Helper()
				if d := must(l.Peek(t.Context(), subject))(t); d.Banned() != want || !d.Degraded {
					t.Errorf("%s, %s: got %+v, want banned %t", mode, subject, d, want)
				}
			}
			must(0, l.Ban(t.Context(), "s", time.Hour))(t)
			must(l.Take(t.Context(), "s"))(t)
			for i := range 3 * most {
				must(l.Take(t.Context(), fmt.Sprint("before ", i)))(t)
			}
			rdb.Cut("refused")
			for i := range 3 * most * asks {
				must(l.Take(t.Context(), fmt.Sprint("within ", i/asks)))(t)
			}
			banned("s", true)
			for i := range most {
				_ = l.Ban(t.Context(), fmt.Sprint(i), time.Hour) // Redis is away
			}
			banned("s", false)
			banned(fmt.Sprint(most-1), true)
		})
	}
}
