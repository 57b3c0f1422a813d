package limit

import (
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/misuse"
)

// mostInstances is the highest Options.Instances.
const mostInstances = 1_000_000

// retryShare is the RetryAfter of a cost above the share of this process. It is a guess:
// when Redis will decide again is not known.
const retryShare = time.Second

func checkInstances(n int) error {
	if n >= 0 && n <= mostInstances {
		return nil
	}
	return fmt.Errorf("Instances is %d: use how many processes share the requests, 1 to %d, or 0 if you do not know", n, mostInstances)
}

// SetInstances changes Options.Instances for all decisions from now on, of this limiter
// and of all limiters that With has made from the same one. Call it when your service
// scales. It is safe for concurrent use and sends nothing. It has no effect on a local
// limiter, and none with FailOpen or FailClosed. If n is out of range, it returns an
// error and changes nothing.
func (l *Limiter) SetInstances(n int) error {
	if !l.made() {
		return errLimiter
	}
	if err := checkInstances(n); err != nil {
		return fmt.Errorf("limit.SetInstances: %w", err)
	}
	l.instances.Store(int64(n))
	return nil
}

// Instances returns how many processes share the limit while Redis does not decide: the
// argument of the last SetInstances, or else Options.Instances. It is safe for concurrent
// use, and panics on a nil or zero Limiter.
func (l *Limiter) Instances() int {
	misuse.Made(l.made(), errLimiter)
	return int(l.instances.Load())
}

// instancesHint warns of a limit that each process applies by itself in an outage.
var instancesHint background.Hint

func (l *Limiter) hintInstances() {
	if l.instances.Load() == 0 && !instancesHint.Given() {
		instancesHint.Give("neap: Redis does not decide, and limit.Options.Instances is 0: each process applies the whole limit, so N processes admit up to N times as much; "+
			"set Instances to the number of your processes, even if it is 1, and call SetInstances when it changes", "limit", l.name)
	}
}

// among returns how many instances decide without Redis, or 0 if that is not known.
func (l *Limiter) among() int64 {
	if l.seeds == nil {
		return 0
	}
	return l.instances.Load()
}

// In an outage, a process that is one of n keeps the state of the whole limit in its
// cells, as if each of the other processes did the same as this one: a permit counts n
// times. So what is left is divided by n, whenever Redis was last asked. Permits come
// back as they do in Redis, and n may change at any time.

// share returns what one of n instances may take of left permits: at least 1 if the whole
// limit is left.
func share(left, limit, n int64) int64 {
	if n <= 1 {
		return left
	}
	if limit < n && left == limit {
		return 1
	}
	return left / n
}

// room returns how many permits must be free so that this process, one of n, may take a
// cost. If the cost is above the process's share, fits is false.
func room(r rule, cost, n int64) (all int64, fits bool) {
	limit := r.id().limit
	if cost > share(limit, limit, n) {
		return limit, false
	}
	return min(cost*max(n, 1), limit), true
}

// counts returns how many permits a granted cost counts as. If n is above the limit, a
// bucket counts more than its capacity, so that its debt takes n times as long to drain.
func counts(r rule, cost, n int64) int64 {
	if drains, is := r.(interface{ heaviest() int64 }); is && n > 1 {
		return min(cost*n, drains.heaviest())
	}
	all, _ := room(r, cost, n)
	return all
}

// takeShare does in Go what the scripts do. It reads every rule's cell. If all enforced
// rules grant, it charges each rule that grants. It reports whether it charged any. A
// cost of -n asks about n permits and takes none. It decides for one of n instances; with
// an n of 0 or 1 it decides as the scripts do.
func takeShare(rules []rule, cells []*cell, n, now, cost int64, into []reading) bool {
	granted := true
	for i, r := range rules {
		asked := r.id().costs(max(cost, -cost))
		all, fits := room(r, asked, n)
		r.advance(cells[i], now)
		into[i] = r.read(cells[i], all)
		if asked > 0 && (!fits || !r.admits(cells[i], all)) {
			into[i].denied = true
			granted = granted && r.id().shadow
		}
	}
	banned := banModel(rules, cells, now, cost, into)
	charged := granted && cost > 0 && !banned
	for i, r := range rules {
		if charged && !into[i].refused() {
			into[i] = r.charge(cells[i], counts(r, r.id().costs(cost), n))
		}
		if n > 1 {
			into[i].instances = int32(n) //nolint:gosec // at most mostInstances
		}
	}
	return charged
}

// stateOf returns what a reading means for a request to this process that costs the
// policy cost permits. The Limit is always the policy's.
func stateOf(r rule, was reading, cost int64) State {
	n, limit := int64(was.instances), r.id().limit
	if n <= 1 {
		return r.state(was, min(cost, limit))
	}
	all, fits := room(r, cost, n)
	s := r.state(was, all)
	if was.denied && !fits {
		s.RetryAfter = retryShare
	}
	s.Remaining = share(s.Remaining, limit, n)
	if _, log := r.(*slidingLog); !log && s.Remaining < share(limit, limit, n) { // a log's reading does not say when its permits leave
		was.denied = true
		all, _ = room(r, s.Remaining+1, n)
		s.NextAfter = r.state(was, all).RetryAfter
	}
	return s
}

// unshared reports whether a request is above the share in some of the readings. These
// readings then cannot tell when it would be granted.
func unshared(rules []rule, readings []reading, w wanted) bool {
	for i, r := range rules {
		if n := int64(readings[i].instances); n > 1 {
			if _, fits := room(r, w.of(r), n); !fits {
				return true
			}
		}
	}
	return false
}
