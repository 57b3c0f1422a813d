package limit

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// policiesOf yields generated policies of a kind, beginning with the notable ones.
func policiesOf(t *testing.T, k kind, n int, each func(rng *rand.Rand, p Policy, r rule)) {
	t.Helper()
	rng := redistest.Rand(t)
	for i := range n {
		p := randomPolicy(rng, k)
		if i < len(notable[k]) {
			p = notable[k][i]
		}
		each(rng, p, must(p.compile())(t))
	}
}

// lived returns a cell after a random life, the reading that Redis reported then, and the
// time.
func lived(rng *rand.Rand, r rule) (c *cell, told reading, now time.Time) {
	now = time.Date(2026, 11, 20, 8, 0, 0, 123e6, time.UTC)
	c = new(cell)
	for range rng.IntN(20) {
		s := r.state(told, 1)
		now = now.Add(randomPause(rng, &s, max(grain(r), time.Microsecond)))
		into := make([]reading, 1)
		takeModel([]rule{r}, []*cell{c}, now.UnixMicro(), randomCost(rng, r.id().limit), into)
		told = into[0]
	}
	return c, told, now
}

func copied(c *cell) *cell {
	other := *c
	other.log = slices.Clone(c.log)
	return &other
}

// TestSeedsLeaveWhatIsLeft: a cell that was made from a reading has as much left as the
// cell that was read, at any later time. A log may have less.
func TestSeedsLeaveWhatIsLeft(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			used := 0
			policiesOf(t, k, 300, func(rng *rand.Rand, p Policy, r rule) {
				for range 20 {
					c, told, now := lived(rng, r)
					seeded := new(cell)
					r.resume(seeded, told, now.UnixMicro())
					s := r.state(told, 1)
					for step := range 5 {
						r.advance(c, now.UnixMicro())
						r.advance(seeded, now.UnixMicro())
						want, got := remains(r, c), remains(r, seeded)
						if got > want || got < want && k != kindLog || got < want && step == 0 {
							t.Fatalf("%+v: %+v at step %d: got %d left, want the %d of Redis", p, told, step, got, want)
						}
						if want < r.id().limit {
							used++
						}
						now = now.Add(randomPause(rng, &s, max(grain(r), time.Microsecond)))
					}
					if now = now.Add(s.ResetAfter); remainsAt(r, seeded, now) != r.id().limit {
						t.Fatalf("%+v: %+v after ResetAfter: got %d left, want all of it", p, told, remains(r, seeded))
					}
				}
			})
			if used < 100 {
				t.Errorf("got %d cells with something in use, want more", used)
			}
		})
	}
}

func remainsAt(r rule, c *cell, now time.Time) int64 {
	r.advance(c, now.UnixMicro())
	return remains(r, c)
}

// TestSharesSumUp: n instances that know what Redis said together grant no more than was
// left. If nothing was taken, they grant no more than the limit, or one each.
func TestSharesSumUp(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			policiesOf(t, k, 300, func(rng *rand.Rand, p Policy, r rule) {
				limit := r.id().limit
				n := 1 + rng.Int64N([]int64{3, 20, 1000, mostInstances}[rng.IntN(4)])
				c, told, now := lived(rng, r)
				if rng.IntN(4) == 0 {
					c, told = new(cell), reading{}
				}
				left, most := remainsAt(r, c, now), max(limit, n)
				if left < limit {
					most = left
				}
				one := int64(0) // instances are alike
				seeded := new(cell)
				r.resume(seeded, told, now.UnixMicro())
				for cost := max(limit/n, 1); cost > 0; cost /= 2 {
					for takeOf(r, seeded, n, now, cost).Allowed {
						one += cost
					}
				}
				if one*n > most || (one+1)*n <= left {
					t.Fatalf("%+v: %d instances, %d of %d left: got %d granted by each, want at most %d, and fewer left than there are instances",
						p, n, left, limit, one, most)
				}
			})
		})
	}
}

func takeOf(r rule, c *cell, n int64, now time.Time, cost int64) State {
	into := make([]reading, 1)
	takeShare([]rule{r}, []*cell{c}, n, now.UnixMicro(), cost, into)
	return stateOf(r, into[0], cost)
}

// TestSharesHoldOverTime: n instances that behave alike keep what a bucket and a log
// promise. If the limit is below n, each grants one permit.
func TestSharesHoldOverTime(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{kindBucket, kindFast, kindLog} {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			policiesOf(t, k, redistest.Steps(2000), func(rng *rand.Rand, p Policy, r rule) {
				n := 1 + rng.Int64N([]int64{3, 20, 200}[rng.IntN(3)])
				began := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
				now, c := began, new(cell)
				var granted int64
				type grants struct {
					at      time.Time
					permits int64
				}
				var all []grants
				for range 200 {
					cost := max(randomCost(rng, share(r.id().limit, r.id().limit, n)), 1)
					s := takeOf(r, c, n, now, cost)
					if s.Allowed {
						granted += cost * n
						all = append(all, grants{now, cost * n})
					}
					if b, is := p.(TokenBucket); is {
						refilled := float64(b.Rate) * (float64(now.Sub(began)) + float64(grain(r))) / float64(b.Per)
						if most := float64(max(b.burst(), n)) + refilled; float64(granted) > most*(1+1e-9) {
							t.Fatalf("%+v: %d instances: got %d granted in %v, want at most %v", p, n, granted, now.Sub(began), most)
						}
					}
					if l, is := p.(SlidingLog); is {
						within := int64(0)
						for _, g := range all {
							if now.Sub(g.at) < l.Window {
								within += g.permits
							}
						}
						if most := max(l.Limit, n); within > most {
							t.Fatalf("%+v: %d instances: got %d granted in a window, want at most %d", p, n, within, most)
						}
					}
					now = now.Add(randomPause(rng, &s, max(grain(r), time.Microsecond)))
				}
			})
		})
	}
}

// TestFiguresOfSharesHold: Remaining can be taken, and one more cannot. A denial ends
// after RetryAfter and not before. A refund gives back what was taken, unless the window is
// an instant.
func TestFiguresOfSharesHold(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			policiesOf(t, k, redistest.Steps(2000), func(rng *rand.Rand, p Policy, r rule) {
				n := 2 + rng.Int64N([]int64{3, 20, 200}[rng.IntN(3)])
				whole := share(r.id().limit, r.id().limit, n)
				step := max(grain(r), time.Microsecond)
				now, c := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC), new(cell)
				for range 50 {
					cost := randomCost(rng, whole)
					s := takeOf(r, c, n, now, cost)
					where := fmt.Sprintf("%+v, %d instances, cost %d: %+v", p, n, cost, s)
					would := func(after time.Duration, cost int64) bool {
						return takeOf(r, copied(c), n, now.Add(after), cost).Allowed
					}
					if s.Remaining > 0 && !would(0, s.Remaining) || would(0, s.Remaining+1) {
						t.Fatalf("%s: got Remaining denied or one more granted, want exactly Remaining granted", where)
					}
					if s.Remaining < whole && k != kindLog && (!would(s.NextAfter, s.Remaining+1) || would(s.NextAfter-step, s.Remaining+1)) {
						t.Fatalf("%s: got NextAfter too early or too late, want the first moment for one more", where)
					}
					if !s.Allowed && (!would(s.RetryAfter, cost) || would(s.RetryAfter-step, cost)) {
						t.Fatalf("%s: got RetryAfter too early or too late, want the first moment at which the request is granted", where)
					}
					if s.Remaining > 0 && !isInstant(p) {
						given := takeOf(r, copied(c), n, now, 0)
						into, tried := make([]reading, 1), copied(c)
						takeShare([]rule{r}, []*cell{tried}, n, now.UnixMicro(), s.Remaining, into)
						g := &grant{cost: s.Remaining, readings: into}
						refundModel([]rule{r}, []*cell{tried}, now.UnixMicro(), g, moment{now.UnixMicro(), now.UnixMicro()})
						if after := takeOf(r, tried, n, now, 0); after.Remaining != given.Remaining {
							t.Fatalf("%s: after a refund: got %d remaining, want %d", where, after.Remaining, given.Remaining)
						}
					}
					now = now.Add(randomPause(rng, &s, step))
				}
			})
		})
	}
}

// TestSeedsAreBounded in number and in memory, whatever the subjects are. It is not
// parallel, because the heap belongs to the whole process.
func TestSeedsAreBounded(t *testing.T) { //nolint:paralleltest // as said
	const most = 20_000
	l := must(New(leaking{}, "seeds", []Policy{FixedWindow{Limit: 5, Window: time.Hour}}, &Options{MaxLocal: most, Instances: 2}))(t)
	long := make([]byte, 4000)
	before := heapInUse()
	for i := range 3 * most {
		subject := fmt.Sprint("subject-with-sixty-four-characters-or-some-less-which-is-kept-", i)
		if i%2 == 0 {
			subject = string(long) + subject
		}
		l.seeds.note(l, &grant{subject: subject, readings: make([]reading, 1)})
	}
	each := (int(heapInUse()) - int(before)) / most
	kept := 0
	for i := range l.seeds.shards {
		kept += l.seeds.shards[i].last.Len()
	}
	t.Logf("%d seeds, %d bytes each", kept, each)
	if kept > most || kept < most*8/10 || each > 512 {
		t.Errorf("got %d seeds kept and %d bytes for each of MaxLocal, want about %d and 512 at most", kept, each, most)
	}
	runtime.KeepAlive(l)
}

// TestSeedsAreKeptForInstancesAlone: by default no seed is stored.
func TestSeedsAreKeptForInstancesAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, bubble(t), 1, Options{}, FixedWindow{Limit: 100, Window: time.Hour})
		l := all[0]
		kept := func() (n int) {
			for i := range l.seeds.shards {
				if last := l.seeds.shards[i].last; last != nil {
					n += last.Len()
				}
			}
			return n
		}
		must(l.TakeN(t.Context(), "s", 30))(t)
		if kept() != 0 {
			t.Errorf("by default: got %d seeds, want none", kept())
		}
		if err := l.SetInstances(1); err != nil {
			t.Fatal(err)
		}
		must(l.TakeN(t.Context(), "s", 30))(t)
		if kept() != 1 {
			t.Errorf("after several decisions: got %d seeds of one subject, want one", kept())
		}
		cut(all)
		if d := must(l.TakeN(t.Context(), "s", 40))(t); !d.Allowed || d.Remaining != 0 || kept() != 0 {
			t.Errorf("a process alone: got %+v and %d seeds, want all that was left granted, and the seed used", d, kept())
		}
		if d := must(l.Take(t.Context(), "s"))(t); d.Allowed {
			t.Errorf("after all is taken: got %+v, want a denial", d)
		}
		for _, mode := range []store.FailMode{store.FailOpen, store.FailClosed} {
			if l := must(New(l.rdb, "n", []Policy{FixedWindow{Limit: 1, Window: time.Hour}}, &Options{Fail: mode, Instances: 10}))(t); l.seeds != nil {
				t.Errorf("%v: got seeds, want none", mode)
			}
		}
	})
}

// TestADeniedSubjectStaysDenied: a seed that leaves nothing is stored in process although
// nothing was taken there.
func TestADeniedSubjectStaysDenied(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		if k == kindFast {
			continue // it drains
		}
		synctest.Test(t, func(t *testing.T) {
			p := notable[k][0]
			switch k {
			case kindBucket:
				p = TokenBucket{Rate: 3, Per: time.Hour}
			case kindCalendar:
				p = CalendarWindow{Limit: 3, Every: Day}
			case kindKept: // the notable one has 260,000 permits to take
				p = KeepOnChange(TokenBucket{Name: "kept", Rate: 3, Per: time.Hour})
			}
			all := instances(t, bubble(t), 1, Options{Instances: 2}, p)
			takeAll(t, all[0], false)
			cut(all)
			for range 3 {
				if d := must(all[0].Take(t.Context(), "s"))(t); d.Allowed || d.RetryAfter <= 0 {
					t.Errorf("%+v: got %+v, want a denial with a RetryAfter", p, d)
				}
			}
		})
	}
}

// TestAResetForgetsTheSeed of its subject, and no other seed.
func TestAResetForgetsTheSeed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, bubble(t), 1, Options{Instances: 10}, FixedWindow{Limit: 100, Window: time.Hour})
		l := all[0]
		for _, subject := range []string{"s", "kept"} {
			must(l.TakeN(t.Context(), subject, 50))(t)
		}
		must(l.Reset(t.Context(), "s"))(t)
		cut(all)
		for subject, want := range map[string]int64{"s": 10, "kept": 5} {
			if d := must(l.Peek(t.Context(), subject))(t); d.Remaining != want || !d.Degraded {
				t.Errorf("%s: got %+v, want %d remaining", subject, d, want)
			}
		}
	})
}

// BenchmarkSeeds measures how much more a decision of Redis costs with Instances: for a
// known subject, and for ever new ones.
func BenchmarkSeeds(b *testing.B) {
	for name, policies := range map[string][]Policy{
		"one policy":     {FixedWindow{Limit: 5, Window: time.Hour}},
		"three policies": {FixedWindow{Limit: 5, Window: time.Hour}, SlidingWindow{Limit: 5, Window: time.Hour}, TokenBucket{Rate: 1, Per: time.Hour}},
	} {
		l := must(New(leaking{}, "seeds", policies, &Options{Instances: 2}))(b)
		subjects := make([]string, 1<<20)
		for i := range subjects {
			subjects[i] = fmt.Sprint("ip=192.0.2.", i)
		}
		for many, n := range map[string]int{"known": 1, "50,000 known": 50_000 / len(policies), "new": len(subjects)} {
			b.Run(name+"/"+many, func(b *testing.B) {
				g := &grant{readings: make([]reading, len(policies))}
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					g.subject = subjects[i%n]
					i++
					l.seeds.note(l, g)
				}
			})
		}
	}
}
