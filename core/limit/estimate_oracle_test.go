package limit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/internal/reply"
	"github.com/neap-go/neap/internal/redistest"
)

// leasedModel is the model of one window whose estimates have leases.
type leasedModel struct {
	limit, most int64
	lease       time.Duration
	ends        func(time.Time) time.Time // of a window that begins then

	used   int64
	until  time.Time
	lasted []leasedEstimate // by the ends of their leases
}

type leasedEstimate struct {
	token string
	cost  int64
	ends  time.Time
}

func (m *leasedModel) advance(now time.Time) {
	if !now.Before(m.until) {
		m.used, m.lasted = 0, nil
	}
}

// lapse takes back up to 100 estimates, but no more permits than are in use.
func (m *leasedModel) lapse(now time.Time) {
	n, permits := 0, int64(0)
	for n < min(len(m.lasted), 100) && !m.lasted[n].ends.After(now) {
		permits += m.lasted[n].cost
		n++
	}
	m.used -= min(permits, m.used)
	m.lasted = m.lasted[n:]
}

func (m *leasedModel) take(now time.Time, token string, cost int64) bool {
	m.advance(now)
	if m.used+cost > m.limit {
		m.lapse(now)
	}
	if m.used+cost > m.limit {
		return false
	}
	if m.until.Before(now) || m.until.Equal(now) {
		m.until = m.ends(now)
	}
	m.used += cost
	m.add(leasedEstimate{token, cost, now.Add(m.lease)})
	return true
}

func (m *leasedModel) add(e leasedEstimate) {
	at, _ := slices.BinarySearchFunc(m.lasted, e, func(a, b leasedEstimate) int {
		if c := a.ends.Compare(b.ends); c != 0 {
			return c
		}
		return strings.Compare(a.token, b.token)
	})
	m.lasted = slices.Insert(m.lasted, at, e)
}

func (m *leasedModel) remove(token string) (e leasedEstimate, there bool) {
	at := slices.IndexFunc(m.lasted, func(e leasedEstimate) bool { return e.token == token })
	if at < 0 {
		return e, false
	}
	e = m.lasted[at]
	m.lasted = slices.Delete(m.lasted, at, at+1)
	return e, true
}

// settle gets the end of the window in which the cost was taken.
func (m *leasedModel) settle(now time.Time, token string, cost, actual int64, until time.Time) {
	m.advance(now)
	_, there := m.remove(token)
	more := actual - cost
	if !there && now.Before(until) { // it was taken back, whatever the present window is
		more = actual
	}
	switch {
	case more > 0:
		more = max(min(m.most-m.used, more), 0)
		if more > 0 && !now.Before(m.until) {
			m.until = m.ends(now)
		}
	case now.Before(m.until) && m.until.Equal(until):
		more = max(more, -m.used)
	default:
		more = 0
	}
	if m.used += more; more != 0 && m.used == 0 {
		m.until = now
	}
}

// renew begins an estimate's lease again, and reports whether the estimate is there.
func (m *leasedModel) renew(now time.Time, token string) (there bool) {
	m.advance(now)
	e, there := m.remove(token)
	if there {
		e.ends = now.Add(m.lease)
		m.add(e)
	}
	return there
}

// TestEstimatesEqualModel mixes takes, settlements, refunds, renewals, crashes and pauses.
func TestEstimatesEqualModel(t *testing.T) {
	t.Parallel()
	const perPolicy = 100
	other := TokenBucket{Name: "other", Rate: 1e6, Per: time.Second}
	ban := Ban{After: 1e6, Within: time.Hour, For: time.Hour}
	lasts := func(d time.Duration) func(time.Time) time.Time {
		return func(now time.Time) time.Time { return now.Add(d) }
	}
	nextDay := func(now time.Time) time.Time { return now.Truncate(24 * time.Hour).Add(24 * time.Hour) }
	for name, c := range map[string]struct {
		policy Policy // of 20, on a lease of a minute
		debt   int64
		ends   func(time.Time) time.Time
	}{
		"fixed window":  {FixedWindow{Name: "w", Limit: 20, Window: 5 * time.Minute}, 0, lasts(5 * time.Minute)},
		"owing":         {FixedWindow{Name: "w", Limit: 20, Window: 5 * time.Minute, MaxDebt: 15}, 15, lasts(5 * time.Minute)},
		"kept":          {KeepOnChange(FixedWindow{Name: "w", Limit: 20, Window: 5 * time.Minute}), 0, lasts(5 * time.Minute)},
		"banning":       {WithBan(FixedWindow{Name: "w", Limit: 20, Window: 5 * time.Minute}, ban), 0, lasts(5 * time.Minute)},
		"day":           {CalendarWindow{Name: "w", Limit: 20, Every: Day}, 0, nextDay},
		"day and debt":  {CalendarWindow{Name: "w", Limit: 20, Every: Day, MaxDebt: 15}, 15, nextDay},
		"beyond number": {FixedWindow{Name: "w", Limit: 20, Window: 5 * time.Minute, MaxDebt: 1 << 50}, 1 << 50, lasts(5 * time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, rdb := newServer(t)
			rng := redistest.Rand(t)
			seen := map[string]int{}
			runs := max(redistest.Steps(100_000)/perPolicy/7, 1)
			for i := range runs {
				l := newClocked(t, m, rdb, fmt.Sprintf("e%d", i), other, WithLease(c.policy, time.Minute))
				model := &leasedModel{limit: 20, most: 20 + c.debt, lease: time.Minute, ends: c.ends}
				type taken struct {
					d     Decision
					at    int64
					until time.Time
				}
				var all []taken
				for range perPolicy {
					l.pause([]time.Duration{0, 0, 0, time.Millisecond, 20 * time.Second, 20 * time.Second, time.Minute, time.Minute, 5 * time.Minute}[rng.IntN(9)])
					var one taken
					at := 0
					if len(all) > 0 {
						at = rng.IntN(len(all))
						one = all[at]
					}
					what := rng.IntN(8)
					switch {
					case what < 4 || len(all) == 0:
						cost := 1 + rng.Int64N(10)
						d, err := l.TakeN(t.Context(), "s", cost)
						if err != nil {
							t.Fatal(err)
						}
						before := len(model.lasted)
						if want := model.take(l.now, d.grant.token, cost); d.Allowed != want {
							t.Fatalf("cost %d at %v: got allowed %t, want %t (%+v)", cost, l.now, d.Allowed, want, model)
						}
						if len(model.lasted) < before {
							seen["taken back"]++
						}
						if d.Allowed {
							all = append(all, taken{d, l.now.UnixMicro(), model.until})
						}
					case what < 6: // settled or given back
						all = slices.Delete(all, at, at+1)
						actual := rng.Int64N(15)
						c := &conclusion{grant: one.d.grant, actual: actual, token: one.d.grant.token}
						if what == 5 {
							actual, c.actual, c.how = 0, 0, refunds
						}
						if !slices.ContainsFunc(model.lasted, func(e leasedEstimate) bool { return e.token == one.d.grant.token }) && l.now.Before(one.until) {
							seen["settled late"]++
							if !model.until.Equal(one.until) || !l.now.Before(model.until) {
								seen["emptied"]++
							}
						}
						concludesTwice(t, l, c, []any{integer(one.at), integer(one.at), "0"})
						model.settle(l.now, one.d.grant.token, one.d.grant.cost, actual, one.until)
					case what == 6: // crashed
						all = slices.Delete(all, at, at+1)
					case rng.IntN(3) == 0: // emptied
						must(l.Reset(t.Context(), "s"))(t)
						model.used, model.until, model.lasted = 0, l.now, nil
					default: // renewed
						told, err := l.remote.Run(t.Context(), renewEstimatesScript, []string{l.remote.estimatesOf(l.rules[1], "s")}, "60000", one.d.grant.estimate())
						if err != nil {
							t.Fatal(err)
						}
						numbers, ok := reply.Numbers(told)
						if there := model.renew(l.now, one.d.grant.token); !ok || there != (numbers[0] == 1) {
							t.Fatalf("a renewal: got %v, want %t", told, there)
						}
					}
					d, err := l.TakeN(t.Context(), "s", 0)
					if err != nil {
						t.Fatal(err)
					}
					model.advance(l.now)
					left := *model
					if left.used > left.limit { // it is told what could be taken back
						left.lapse(l.now)
					}
					if got, want := stateAt(&d, 1).Remaining, max(20-left.used, 0); got != want {
						t.Fatalf("after %d at %v: got %d remaining, want %d (%+v)", what, l.now, got, want, model)
					}
				}
			}
			if runs >= 20 && (seen["taken back"] == 0 || seen["settled late"] == 0 || seen["emptied"] == 0) { // one run need not have all
				t.Errorf("got %v, want some estimates that were taken back, some that were settled after that, and some whose window was emptied", seen)
			}
		})
	}
}

// concludesTwice concludes as if the first reply was lost.
func concludesTwice(t *testing.T, l *clocked, c *conclusion, clock []any) {
	t.Helper()
	for range 2 {
		keys, args := l.remote.toConclude(c)
		result, err := l.remote.runAt(t.Context(), settleScript, "", keys, args(clock)...)
		if err != nil {
			t.Fatal(err)
		}
		if now, is := outside(result.numbers); is {
			l.seen(now)
			keys, args = l.remote.toConclude(c)
			if _, err = l.remote.runAt(t.Context(), settleScript, "", keys, args(clock)...); err != nil {
				t.Fatal(err)
			}
		}
	}
}
