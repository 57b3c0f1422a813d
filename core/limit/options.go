package limit

import (
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/options"
	"github.com/neap-go/neap/core/store"
)

const (
	// DefaultBudget is the most time that a decision takes if neither Options.Budget
	// nor the store's says otherwise.
	DefaultBudget = 50 * time.Millisecond
	// DefaultMaxLocal is how many states are kept in process where
	// Options.MaxLocal is 0.
	DefaultMaxLocal = 100_000
	// DefaultMaxWaiting is how many callers may be in Wait at once where
	// Options.MaxWaiting is 0.
	DefaultMaxWaiting = 1000
)

// Options are a limiter's options. The zero value is ready to use; it is
// copied by the constructors. A local limiter has no use for Budget, Fail,
// Instances and RememberDenials, and charges nothing ahead; it checks Prepaid, and keeps buckets as small.
type Options struct {
	// Budget is the most time a decision takes, whatever the client's own timeouts
	// are. A millisecond to an hour; 0 means the store's, or DefaultBudget.
	// A call may take longer until a server has first answered (the store's FirstContact), and with
	// store.Queued by up to a second while the process is short of CPU.
	Budget time.Duration
	// Fail is how to decide when Redis cannot; the zero value is FailLocal.
	Fail FailMode
	// Instances is how many processes the requests are spread over: 1 to 1,000,000, or 0 if that is not known.
	// SetInstances changes it. It counts with FailLocal, while Redis does not decide. Then a process begins with
	// what Redis last told it of the subject and divides what is left by Instances, rounded down. Permits come
	// back to it as the policy says: of a bucket at Rate / Instances. Of a SlidingLog it does not know when each
	// permit was taken, so all but the oldest count for as long as the youngest. Together the processes exceed a
	// limit by what was taken before and a process did not see, on average over the processes. So in a window they
	// and Redis admit at most twice the limit.
	//
	// If a limit is below Instances, a process grants one permit when none is known to be taken, and otherwise
	// none: all processes together then admit up to Instances. A cost above Limit / Instances, which is rounded
	// down and at least 1, is no error. It is denied until Redis decides, each time with a RetryAfter of a second.
	// In such a decision Limit is the policy's, and Remaining is what this process grants. When Redis decides
	// again, its own state counts: what was admitted without it is not added.
	//
	// With 0 a process begins with nothing taken and grants the whole limit, and keeps nothing of what Redis
	// tells. With 1 it grants all that is left. From 1 on each decision of Redis costs some 200 ns more, and
	// memory: what was told of the last MaxLocal subjects and policies is kept, in less than 512 bytes each.
	Instances int
	// MaxLocal is how many states, one for each subject and policy, are kept
	// in process before the one longest unused is forgotten, which then starts
	// afresh; 0 means DefaultMaxLocal. It must be at least one for each policy
	// and for each Ban.
	// Together they take less than 512 bytes for each of MaxLocal, whatever the
	// subjects are: of sliding logs, which keep every permit, fewer are kept.
	MaxLocal int
	// MaxWaiting is how many callers may be in Wait at once; 0 means
	// DefaultMaxWaiting.
	MaxWaiting int
	// RememberDenials is how long this process repeats a denial without asking Redis, up
	// to a minute; 0 repeats none, and the least is 2 ms. Use 100 ms if unsure. A denial covers its cost and
	// larger ones. It ends 1 ms and a thousandth of its RetryAfter before that cost could be granted, so that a
	// denial of less than 2 ms is not repeated. If another process, or another
	// limiter that New made, refunds, resets or lifts a ban, this process may deny for up to
	// RememberDenials longer. A repeated denial costs no round trip; its figures are those
	// of the last answer, aged. At most MaxLocal denials are kept. Peek, requests of cost 0
	// and decisions without Redis neither use denials nor add any. Of a limiter with a [Ban] bans alone are repeated.
	RememberDenials time.Duration
	// Prepaid charges several permits at once; the zero value charges each by itself.
	Prepaid Prepaid
	// Observer, if set, is told of every decision, beside the observers of the store.
	Observer store.Observer
}

// withDefaults is a checked copy of the options with the defaults filled in.
func (o *Options) withDefaults(st *store.Store) (Options, error) {
	var own Options
	if o != nil {
		own = *o
	}
	var c options.Check
	c.Duration("Budget", &own.Budget, time.Millisecond, time.Hour, st.Budget(DefaultBudget))
	c.Positive("MaxLocal", &own.MaxLocal, DefaultMaxLocal)
	c.Positive("MaxWaiting", &own.MaxWaiting, DefaultMaxWaiting)
	prepaid, fault := own.Prepaid.withDefaults()
	own.Prepaid = prepaid
	return own, errors.Join(c.Err(), own.Fail.check(), checkInstances(own.Instances), checkRemember(own.RememberDenials), fault)
}

// The shortest and the longest RememberDenials: nothing of a shorter one is left by the margins for clocks.
const (
	leastRemembered = 2 * time.Millisecond
	mostRemembered  = time.Minute
)

func checkRemember(d time.Duration) error {
	if d == 0 || d >= leastRemembered && d <= mostRemembered {
		return nil
	}
	return fmt.Errorf("RememberDenials is %v: use %v to %v, or 0 to remember none", d, leastRemembered, mostRemembered)
}

// compile makes the policies ready.
func (o *Options) compile(policies []Policy) ([]rule, error) {
	kept, fault := o.Prepaid.policies(policies)
	rules, err := compile(kept)
	return rules, errors.Join(err, fault)
}

// checkLocal refuses room for less than one subject: its policies would forget
// each other.
func checkLocal(most int, rules []rule) error {
	if most >= states(rules) {
		return nil
	}
	return fmt.Errorf("MaxLocal is %d: it must be at least %d, a state for each policy and for each Ban", most, states(rules))
}
