package limit

import (
	"fmt"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/store"
)

// mostInstances is the highest Options.Instances.
const mostInstances = 1_000_000

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
	if l.remote == nil || l.opts.Fail != store.FailLocal {
		return 0
	}
	return l.instances.Load()
}
