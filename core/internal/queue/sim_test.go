package queue

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// These are the times that the modelled server needs, as measured for Redis 7.0.
const (
	perEvent  = 6 * time.Microsecond // to read a batch from a socket and to answer it
	perCall   = 3 * time.Microsecond
	perMerged = 60 * time.Nanosecond // a call that is merged with others
)

// modelled is a server with one thread at a distance.
type modelled struct {
	mu   sync.Mutex
	free time.Time // when it will have done all that it was sent
	busy time.Duration
}

// work returns when the server will have done its work.
func (m *modelled) work(d time.Duration) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); m.free.Before(now) {
		m.free = now
	}
	m.free = m.free.Add(d)
	m.busy += d
	return m.free
}

// link is a process's connection to the server.
type link struct {
	*modelled

	trip    time.Duration
	perCall time.Duration
}

func (link) SendLone(context.Context, Call) Result { panic("no call goes by itself in these tests") }
func (link) Left(string)                           {}

func (l link) Send(b *Batch) Result {
	for _, e := range b.Entries {
		e.Call.(*call).state.CompareAndSwap(unsent, written)
	}
	time.Sleep(l.trip / 2)
	done := l.work(perEvent + time.Duration(len(b.Entries))*l.perCall)
	time.Sleep(time.Until(done) + l.trip/2)
	return Answered
}

func (link) Note(Result, int)                   {}
func (link) Probe(string, time.Duration) Result { return Answered }

// between is how long callers do something else on average before they ask again.
const between = 100 * time.Microsecond

// traffic is what callers do.
type traffic struct {
	processes int
	rate      float64 // calls a second, of all processes together
	callers   int     // instead, callers that ask again and again
	trip      time.Duration
	perCall   time.Duration
	lasts     time.Duration
	warm      time.Duration // is not counted; 0 means a fifth of what it lasts
	rule      rule
}

// outcome is how the calls ended.
type outcome struct {
	took              []time.Duration // of those that were answered
	unsent, uncertain int
	busy              float64 // share of the time in which the server worked
}

// quantile returns a quantile in round trips.
func (o *outcome) quantile(q float64, trip time.Duration) float64 {
	return float64(o.took[int(q*float64(len(o.took)-1))]) / float64(trip)
}

// run has the callers ask in virtual time.
func (tr traffic) run(t *testing.T) *outcome {
	t.Helper()
	o := new(outcome)
	synctest.Test(t, func(t *testing.T) {
		server := new(modelled)
		began := time.Now()
		warm, end := began.Add(cmp.Or(tr.warm, tr.lasts/5)), began.Add(tr.lasts)
		var mu sync.Mutex
		ask := func(q *Queue) {
			c, start := new(call), time.Now()
			err := q.Do(withBudget(t.Context()), c)
			if start.Before(warm) {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				o.took = append(o.took, time.Since(start))
			case c.state.Load() == written:
				o.uncertain++
			default:
				o.unsent++
			}
		}
		var all sync.WaitGroup
		for i := range tr.processes {
			q := New(link{server, tr.trip, tr.perCall}, budget, false)
			if tr.rule != nil {
				q.next = tr.rule
			}
			if tr.callers > 0 {
				for caller := range tr.callers / tr.processes {
					r := rand.New(rand.NewPCG(uint64(caller), 2))
					all.Go(func() {
						for time.Now().Before(end) {
							ask(q)
							time.Sleep(time.Duration(r.ExpFloat64() * float64(between)))
						}
					})
				}
				continue
			}
			r := rand.New(rand.NewPCG(uint64(i), 1))
			all.Go(func() {
				for at := began; at.Before(end); {
					at = at.Add(time.Duration(r.ExpFloat64() / tr.rate * float64(tr.processes) * float64(time.Second)))
					time.Sleep(time.Until(at))
					all.Go(func() { ask(q) })
				}
			})
		}
		time.Sleep(time.Until(warm))
		server.mu.Lock()
		before := server.busy
		server.mu.Unlock()
		time.Sleep(time.Until(end))
		server.mu.Lock()
		o.busy = float64(server.busy-before) / float64(end.Sub(warm))
		server.mu.Unlock()
		all.Wait()
		settle()
	})
	if len(o.took) == 0 {
		t.Fatal("the calls: got no answer, want some")
	}
	slices.SortFunc(o.took, cmp.Compare)
	return o
}

// TestCallersWaitALittleMoreThanARoundTrip shows what the rule is for: 20,000 to 250,000
// calls a second of one process, at a distance of 0.5 to 5 ms.
func TestCallersWaitALittleMoreThanARoundTrip(t *testing.T) {
	t.Parallel()
	for _, trip := range []time.Duration{500 * time.Microsecond, time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond} {
		for _, rate := range []float64{20_000, 60_000, 150_000, 250_000} {
			o := traffic{processes: 1, rate: rate, trip: trip, perCall: perCall, lasts: lasts(trip)}.run(t)
			p50, p99 := o.quantile(0.5, trip), o.quantile(0.99, trip)
			t.Logf("%v, %.0f a second: %d calls, p50 %.2f and p99 %.2f round trips", trip, rate, len(o.took), p50, p99)
			if p50 > 1.3 || p99 > 1.5 || o.unsent+o.uncertain > 0 {
				t.Errorf("%v, %.0f a second: got p50 %.2f, p99 %.2f, %d without an answer, want at most 1.3, 1.5 and 0",
					trip, rate, p50, p99, o.unsent+o.uncertain)
			}
		}
	}
}

// lasts returns a time that contains enough round trips.
func lasts(trip time.Duration) time.Duration { return max(40*trip, 60*time.Millisecond) }

// TestCallersThatAskAgain has 256 callers wait for their answers, do something else for a
// little, and ask again. Without that pause, in lock-step, the longest of a hundred calls
// takes up to 1.7 round trips.
func TestCallersThatAskAgain(t *testing.T) {
	t.Parallel()
	const trip = 2 * time.Millisecond
	o := traffic{processes: 1, callers: 256, trip: trip, perCall: perCall, lasts: 200 * time.Millisecond}.run(t)
	p50, p99 := o.quantile(0.5, trip), o.quantile(0.99, trip)
	t.Logf("%d calls, p50 %.2f and p99 %.2f round trips", len(o.took), p50, p99)
	if p50 > 1.3 || p99 > 1.5 || o.unsent+o.uncertain > 0 {
		t.Errorf("got p50 %.2f, p99 %.2f, %d without an answer, want at most 1.3, 1.5 and 0", p50, p99, o.unsent+o.uncertain)
	}
}

// TestOtherRulesMakeCallersWait shows what the rule avoids: a fixed number of batches in
// flight, and batches that leave at once when another returns.
func TestOtherRulesMakeCallersWait(t *testing.T) {
	t.Parallel()
	const trip = 2 * time.Millisecond
	for name, other := range map[string]rule{
		"four batches": func(q *Queue, _ int64, _ bool) bool { return len(q.inFlight) < 4 },
		"no gap after a return": func(q *Queue, now int64, returned bool) bool {
			return returned && len(q.inFlight) < q.pace.batches() || spaced(q, now, returned)
		},
	} {
		o := traffic{processes: 1, rate: 150_000, trip: trip, perCall: perCall, lasts: lasts(trip), rule: other}.run(t)
		p50, p99 := o.quantile(0.5, trip), o.quantile(0.99, trip)
		t.Logf("%s: p50 %.2f and p99 %.2f round trips", name, p50, p99)
		if p50 <= 1.3 && p99 <= 1.5 {
			t.Errorf("%s: got p50 %.2f and p99 %.2f, want them too long for the other tests", name, p50, p99)
		}
	}
}

// TestManyProcesses share one server, which is the bottleneck.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	const trip = 500 * time.Microsecond
	for name, c := range map[string]struct {
		rate    float64
		perCall time.Duration
		refused bool // some calls are, unsent
		busy    float64
		p50     time.Duration
	}{
		"distinct keys":         {250_000, perCall, false, 0.8, 10 * time.Millisecond},
		"merged":                {1_000_000, perMerged, false, 0.95, 10 * time.Millisecond},
		"more than it can take": {400_000, perCall, true, 0.95, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			span := 500 * time.Millisecond
			if redistest.Race { // which takes ten times as long
				span /= 8
			}
			warm := 100 * time.Millisecond // a flood takes as long to be held off
			if !c.refused {
				warm = span / 5
			}
			o := traffic{processes: 100, rate: c.rate, trip: trip, perCall: c.perCall, lasts: span + warm, warm: warm}.run(t)
			p50 := time.Duration(o.quantile(0.5, 1))
			t.Logf("%d answered, %d unsent, %d uncertain, busy %.2f, p50 %v, p99 %v",
				len(o.took), o.unsent, o.uncertain, o.busy, p50, time.Duration(o.quantile(0.99, 1)))
			if o.uncertain > 0 || c.refused != (o.unsent > 0) || p50 > c.p50 || o.busy < c.busy {
				t.Errorf("got %d unsent, %d uncertain, p50 %v, busy %.2f, want refusals %t, none uncertain, at most %v, at least %.2f",
					o.unsent, o.uncertain, p50, o.busy, c.refused, c.p50, c.busy)
			}
		})
	}
}
