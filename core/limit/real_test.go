package limit

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// quick are policies whose answers change within the milliseconds that a real clock moves
// between two commands.
func quick(rng *rand.Rand, k kind) Policy {
	length := time.Duration(1+rng.IntN(20)) * time.Millisecond
	limit := 1 + rng.Int64N(20)
	switch k {
	case kindBucket:
		rate := 1 + rng.Int64N(length.Milliseconds())
		return TokenBucket{Rate: rate, Per: length, Burst: limit}
	case kindFast:
		return TokenBucket{Rate: 1001 + rng.Int64N(20_000), Per: time.Second, Burst: limit}
	case kindWindow:
		return FixedWindow{Limit: limit, Window: length}
	case kindSliding:
		return SlidingWindow{Limit: limit, Window: length}
	case kindCalendar:
		return quickCalendar{CalendarWindow{Name: "quick", Limit: limit, Every: Hour}, length}
	case kindKept:
		return KeepOnChange(TokenBucket{Name: "quick", Rate: 1 + rng.Int64N(20_000), Per: time.Second, Burst: limit})
	default:
		return SlidingLog{Limit: limit, Window: length}
	}
}

// quickCalendar is a calendar whose periods are a few milliseconds long.
type quickCalendar struct {
	CalendarWindow

	length time.Duration
}

func (p quickCalendar) compile() (rule, error) {
	r, err := p.CalendarWindow.compile()
	if err != nil {
		return nil, err
	}
	r.(*calendar).around = func(t time.Time) (starts [4]time.Time) {
		for i := range starts {
			starts[i] = t.Truncate(p.length).Add(time.Duration(i-1) * p.length)
		}
		return starts
	}
	return r, nil
}

// TestRealRedisEqualsModel shows exactness on a real server. What each script answers is
// what the model answers at a moment between two readings of the server's clock. If the
// clock may have moved within the script, the test follows every state that explains the
// answers so far.
func TestRealRedisEqualsModel(t *testing.T) { //nolint:tparallel // what they have met is counted when all have ended
	t.Parallel()
	srv := redistest.Standalone(t)
	var met redistest.Coverage
	choices := map[string]func(*rand.Rand) []Policy{"sets": func(rng *rand.Rand) []Policy {
		on := []kind{kindBucket, kindWindow, kindSliding} // each microsecond of the others would be a case
		first := rng.IntN(len(on))
		return []Policy{quick(rng, on[first]), quick(rng, on[(first+1)%len(on)])}
	}}
	for _, k := range kinds {
		choices[string(k)] = func(rng *rand.Rand) []Policy { return []Policy{quick(rng, k)} }
	}
	t.Run("of", func(t *testing.T) {
		for name, choose := range choices {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				// Nothing is sent twice, so that a slow answer cannot count twice.
				client := &redistest.TimedClient{Admin: srv.Admin(t, func(o *redis.Options) { o.MaxRetries = -1 })}
				prefix := srv.Prefix(t)
				rng := redistest.Rand(t)
				denied, explained := 0, 0
				for i := range max(redistest.Steps(10_000)/100, 2) {
					policies := choose(rng)
					l := must(New(storetest.At(t, client, prefix), fmt.Sprintf("r%d", i), policies, closed(10*time.Second)))(t)
					states := [][]cell{make([]cell, len(policies))}
					for op := range 100 {
						cost := int64(rng.IntN(4))
						if cost == 3 { // whatever drains between two commands, the second is denied
							cost = math.MaxInt64
						}
						cost = min(cost, mostOf(l))
						g := newGrant("s", cost, len(policies))
						switch err := l.take(t.Context(), g); {
						case errors.Is(err, errMoves): // the periods of a quickCalendar are shorter than a busy machine may need
							continue
						case err != nil:
							t.Fatal(err)
						}
						got := g.readings
						if got[0].denied {
							denied++
						}
						times := clocks(l.rules, client.Before, client.After)
						if followed(l.rules, states, times) > mostExplained {
							break
						}
						states = explain(l.rules, states, times, cost, got)
						if len(states) == 0 {
							t.Fatalf("%+v: answer %d to a cost of %d: got %+v, want one that the model explains",
								policies, op, cost, got)
						}
						explained++
					}
				}
				met.Add(map[string]int{"denied": denied, "explained": explained})
			})
		}
	})
	met.Want(t, 1, "denied")
	met.Want(t, redistest.Steps(10_000), "explained")
}

// mostExplained is how many ways from a state to the next are followed. If the machine
// stood still between two readings of the clock, there are more; the test then begins
// another limiter.
const mostExplained = 20_000

// followed returns how many ways explain follows: each state with each time of reading
// and, on a clock of milliseconds, with each time of writing.
func followed(rules []rule, states [][]cell, times [][]int64) int {
	ways := len(states) * len(times)
	if grain(rules[0]) >= time.Millisecond {
		ways *= len(times)
	}
	return ways
}

// explain runs the model on every state at every time that the server's clock may have
// shown. It keeps the states whose answer is the one that was given.
func explain(rules []rule, states [][]cell, times [][]int64, cost int64, got []reading) [][]cell {
	var kept [][]cell
	keep := func(cells []cell) {
		if !slices.ContainsFunc(kept, func(k []cell) bool { return slices.EqualFunc(k, cells, sameCell) }) {
			kept = append(kept, cells)
		}
	}
	for _, was := range withEnded(rules, states, times) {
		for _, read := range times {
			cells := slices.Clone(was)
			readings, charged := takeAt(rules, cells, read, cost)
			switch {
			case !sameReadings(rules, readings, got):
			case !charged:
				keep(was)
			case grain(rules[0]) < time.Millisecond:
				keep(cells)
			default:
				for _, written := range times {
					if late := delayed(rules, cells, read, written); late != nil {
						keep(late)
					}
				}
			}
		}
	}
	return kept
}

// clocks returns the times at which the rules may have read the clock, between two
// readings of it in microseconds. Before Redis 7.2 the clock moves within a script, so
// each of several rules on PTTL may see another millisecond.
func clocks(rules []rule, before, after int64) [][]int64 {
	step := grain(rules[0]).Microseconds()
	all := [][]int64{nil}
	for range rules {
		var longer [][]int64
		for _, times := range all {
			for tick := before / step; tick <= after/step; tick++ {
				longer = append(longer, append(slices.Clone(times), tick*step))
			}
		}
		all = longer
	}
	return all
}

// takeAt is takeModel with a separate time for every rule.
func takeAt(rules []rule, cells []cell, nows []int64, cost int64) (readings []reading, charged bool) {
	readings = make([]reading, len(rules))
	granted := true
	for i, r := range rules {
		cells[i].log = slices.Clone(cells[i].log)
		r.advance(&cells[i], nows[i])
		readings[i] = r.read(&cells[i], cost)
		if cost > 0 && !r.admits(&cells[i], cost) {
			readings[i].denied, granted = true, false
		}
	}
	if !granted || cost == 0 {
		return readings, false
	}
	for i, r := range rules {
		r.charge(&cells[i], cost)
		readings[i] = r.read(&cells[i], 0)
	}
	return readings, true
}

// delayed returns the state if the rules write later than they have read, or nil if one
// would write earlier.
func delayed(rules []rule, cells []cell, read, written []int64) []cell {
	late := slices.Clone(cells)
	for i := range late {
		by := (written[i] - read[i]) / 1000
		if by < 0 {
			return nil
		}
		late[i].now += by
		late[i].from += by
		if _, is := rules[i].(*calendar); is {
			late[i].m += by
		}
	}
	return late
}

// withEnded adds the states of calendar windows that end while the script runs: it has
// read the clock before the end, and then finds no counter.
func withEnded(rules []rule, states [][]cell, times [][]int64) [][]cell {
	all := slices.Clone(states)
	for _, was := range states {
		ended := slices.Clone(was)
		for i, r := range rules {
			if _, is := r.(*calendar); is && ended[i].m <= times[len(times)-1][i]/1000 {
				ended[i].n = 0
			}
		}
		if !slices.EqualFunc(was, ended, sameCell) {
			all = append(all, ended)
		}
	}
	return all
}

func sameCell(a, b cell) bool {
	return a.now == b.now && a.from == b.from && a.n == b.n && a.m == b.m && slices.Equal(a.log, b.log)
}

// sameReadings ignores what only a log's denial reports: when it grants.
func sameReadings(rules []rule, model, got []reading) bool {
	for i, r := range rules {
		m := model[i]
		if _, ok := r.(*slidingLog); ok && !m.denied {
			m.n[2] = got[i].n[2]
		}
		if b, ok := r.(*keptBucket); ok && m.denied == got[i].denied && b.state(m, 1) == b.state(got[i], 1) {
			continue // the same debt may be told in two ways
		}
		if m != got[i] {
			return false
		}
	}
	return true
}

// TestExactUnderContention has 64 goroutines on 8 clients share one key.
func TestExactUnderContention(t *testing.T) {
	t.Parallel()
	const most = 400
	hour := []Policy{
		TokenBucket{Rate: most, Per: time.Hour},
		FixedWindow{Limit: most, Window: time.Hour},
		SlidingWindow{Limit: most, Window: time.Hour},
		SlidingLog{Limit: most, Window: time.Hour},
	}
	for _, policies := range setsOf(hour) {
		t.Run(policies[len(policies)-1].PolicyName()+fmt.Sprint(len(policies)), func(t *testing.T) {
			t.Parallel()
			redistest.EachReal(t, func(t *testing.T, connect func() redis.UniversalClient, prefix string) {
				admitted, began, ended := contend(t, connect, prefix, policies, 64*12)
				refilled := int64(0)
				if _, ok := policies[0].(TokenBucket); ok && len(policies) == 1 {
					refilled = int64(ended.Sub(began)/(time.Hour/most)) + 1
				}
				if admitted < most || admitted > most+refilled {
					t.Errorf("got %d admitted, want %d (and %d refilled)", admitted, most, refilled)
				}
			})
		})
	}
	for _, p := range []TokenBucket{
		{Rate: 500, Per: time.Second, Burst: 100},
		{Rate: 1100, Per: time.Second, Burst: 100},
	} {
		t.Run(p.PolicyName(), func(t *testing.T) {
			t.Parallel()
			redistest.EachReal(t, func(t *testing.T, connect func() redis.UniversalClient, prefix string) {
				admitted, began, ended := contend(t, connect, prefix, []Policy{p}, 64*25)
				tick := time.Millisecond
				most := p.Burst + int64(float64(p.Rate)*(ended.Sub(began)+tick).Seconds())
				if admitted < p.Burst || admitted > most { // a slow machine may ask for fewer than are refilled
					t.Errorf("got %d of %d admitted in %v, want from %d to %d",
						admitted, 64*25, ended.Sub(began), p.Burst, most)
				}
			})
		})
	}
}

// contend makes attempts from 64 goroutines on 8 clients. It counts what was admitted
// between two readings of the server's clock.
func contend(
	t *testing.T, connect func() redis.UniversalClient, prefix string, policies []Policy, attempts int,
) (admitted int64, began, ended time.Time) {
	t.Helper()
	limiters := make([]*Limiter, 8)
	var clock redis.UniversalClient
	for i := range limiters {
		clock = connect()
		limiters[i] = must(New(storetest.At(t, clock, prefix), "contend", policies, closed(5*time.Second)))(t)
	}
	began = redistest.Time(t, clock)
	var count atomic.Int64
	var wg sync.WaitGroup
	for g := range 64 {
		wg.Go(func() {
			for range attempts / 64 {
				d, err := limiters[g%len(limiters)].Take(t.Context(), "one")
				if err != nil {
					t.Errorf("a take by goroutine %d: got %v, want no error", g, err)
					return
				}
				if d.Allowed {
					count.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return count.Load(), began, redistest.Time(t, clock)
}

// behindProxy is a client that goes through a proxy.
type behindProxy struct {
	rdb    redis.UniversalClient
	proxy  *redistest.Proxy
	prefix string
}

func behindProxies(t *testing.T, one *redistest.Server, many *redistest.ClusterServer) map[string]behindProxy {
	t.Helper()
	p, q := one.Proxy(t), many.Proxy(t)
	return map[string]behindProxy{
		"standalone": {one.Client(t, func(o *redis.Options) { o.Dialer = p.Dial }), p, one.Prefix(t)},
		"cluster":    {many.Client(t, func(o *redis.ClusterOptions) { o.Dialer = q.Dial }), q, many.Prefix(t)},
	}
}

// TestLostReplyTakesOnce loses the reply of every decision after the server made it. Each
// decision took its permit exactly once, with the client's default options.
func TestLostReplyTakesOnce(t *testing.T) {
	t.Parallel()
	for name, c := range behindProxies(t, redistest.Standalone(t), redistest.Cluster(t)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, policies := range [][]Policy{oneOfEach[:1], oneOfEach[2:3], oneOfEach[3:4], oneOfEach[4:5], oneOfEach} {
				l := must(New(storetest.At(t, c.rdb, c.prefix), "lost", policies, closed(10*time.Second)))(t)
				subject := fmt.Sprint(len(policies), policies[0].PolicyName())
				before := must(l.TakeN(t.Context(), subject, 1))(t) // tells the server the script
				c.proxy.Lose(redistest.EOF, 3, "evalsha", "eval")
				for range 3 {
					if d, err := l.Take(t.Context(), subject); !errors.Is(err, script.ErrMaybeExecuted) {
						t.Errorf("%s: a take whose reply was lost: got %+v, %v, want ErrMaybeExecuted",
							subject, d, err)
					}
				}
				c.proxy.Lose(redistest.EOF, 0)
				after, err := l.Peek(t.Context(), subject)
				if err != nil || after.first.Remaining != before.first.Remaining-3 {
					t.Errorf("%s: three lost decisions took %d permits (%v), want 3",
						subject, before.first.Remaining-after.first.Remaining, err)
				}
			}
		})
	}
}
