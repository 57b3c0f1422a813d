package limit

import (
	"fmt"
	"math"
	"time"

	"github.com/neap-go/neap/core/internal/misuse"
)

// mostInstances is the highest Options.Instances.
const mostInstances = 1_000_000

// retryShare is the RetryAfter of a cost above the share of this process: when Redis will decide again is not known.
const retryShare = time.Second

func checkInstances(n int) error {
	if n >= 0 && n <= mostInstances {
		return nil
	}
	return fmt.Errorf("Instances is %d: use how many processes ask, 1 to %d, or 0 if that is not known", n, mostInstances)
}

// SetInstances changes Options.Instances of this limiter and of all that With has made from the same one, for the
// decisions from now on: call it when your service scales. It is safe for concurrent use and sends nothing. On a local
// limiter, and with FailOpen or FailClosed, it has no effect. An error says that n is out of range; nothing is changed
// then.
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

// Instances is how many processes share the limit while Redis does not decide: Options.Instances, or the last
// SetInstances. It is safe for concurrent use, and panics on a nil or zero Limiter.
func (l *Limiter) Instances() int {
	misuse.Made(l.made(), errLimiter)
	return int(l.instances.Load())
}

// among is the number of instances that decide without Redis, if this process is one of several; 0 if that is not known.
func (l *Limiter) among() int64 {
	if l.seeds == nil {
		return 0
	}
	return l.instances.Load()
}

// A process that is one of n keeps the state of the whole limit in its cells, as if each of the others did what it does
// itself: a permit counts n times. So what is left is divided by n, whatever it was when Redis was last asked, it comes
// back as it does in Redis, and n may change at any time.

// share is what one of n instances may take of a limit, or of what is left of it: at least one of a whole limit.
func share(left, limit, n int64) int64 {
	if n <= 1 {
		return left
	}
	if limit < n && left == limit {
		return 1
	}
	return left / n
}

// room is what there must be for a cost of this process, one of n. A cost above its share does not fit.
func room(r rule, cost, n int64) (all int64, fits bool) {
	limit := r.id().limit
	if cost > share(limit, limit, n) {
		return limit, false
	}
	return min(cost*max(n, 1), limit), true
}

// counts is what a cost that was granted counts. If n is above the limit, a bucket counts more than it has room for:
// its debt then takes n times as long to drain.
func counts(r rule, cost, n int64) int64 {
	if b, is := r.(*bucket); is && n > 1 {
		return min(cost*n, b.heaviest())
	}
	all, _ := room(r, cost, n)
	return all
}

// heaviest is how many permits of debt all arithmetic has room for.
func (b *bucket) heaviest() int64 {
	return b.limit * max(min(1<<61/b.capacity, math.MaxInt64/2/int64(b.whole)), 1)
}

// takeShare is what the scripts do, in Go: it reads every rule's cell, and when
// all that are enforced grant, it charges each that does. It says whether it
// charged any. A cost of -n asks about n permits and takes none. It decides for one of n instances; of
// 0 or 1 as the scripts do.
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
			into[i].instances = int32(n) //nolint:gosec // mostInstances
		}
	}
	return charged
}

// stateOf is what a reading means to who asks this process for what costs the policy that. The Limit stays that of the policy.
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
	if _, log := r.(*slidingLog); !log && s.Remaining < share(limit, limit, n) { // when permits leave a log is not in a reading
		was.denied = true
		all, _ = room(r, s.Remaining+1, n)
		s.NextAfter = r.state(was, all).RetryAfter
	}
	return s
}

// unshared says that what is wanted is above the share that some of the readings tell of, so that they cannot tell when it would be granted.
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
