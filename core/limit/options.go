package limit

import (
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/options"
	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/core/store"
)

const (
	// DefaultBudget is the most time that a decision takes if neither Options.Budget nor
	// the store's Budget is set.
	DefaultBudget = 50 * time.Millisecond

	defaultMaxLocal   = 100_000
	defaultMaxWaiting = 1000
)

// Options are the options of a limiter. The zero value is ready to use. The constructors
// copy it. A local limiter ignores Budget, Fail, Instances and RememberDenials. It checks
// Prepaid and makes buckets smaller as Prepaid says, but charges nothing ahead.
type Options struct {
	// Budget is the most time that a decision takes, whatever the client's own time-outs
	// are: a millisecond to an hour. 0 means the store's Budget, or else DefaultBudget. The
	// documentation of this package lists when it may take longer.
	Budget time.Duration
	// Fail says how to decide when Redis cannot. The zero value is FailLocal. It does not
	// decide if the caller's own deadline passes first: then the error is that of ctx.
	Fail store.FailMode
	// Instances is how many processes share the requests: 1 to 1,000,000, or 0 if you do
	// not know. SetInstances changes it. It has an effect with FailLocal only, while
	// Redis does not decide.
	//
	// A process then begins with what Redis last reported about the subject. It divides
	// what is left by Instances, rounded down. Permits come back as the policy says: a
	// bucket refills at Rate / Instances. For a SlidingLog the process does not know when
	// each permit was taken, so all but the oldest count for as long as the youngest.
	//
	// Together the processes can exceed a limit. The excess is what was taken before the
	// outage and not seen by a process, averaged over the processes. So in a window the
	// processes and Redis together admit at most twice the limit.
	//
	// If a limit is below Instances, a process grants one permit if it knows of none that
	// is taken, and otherwise none. All processes together then admit up to Instances. A
	// cost above Limit / Instances (rounded down, and at least 1) is not an error. It is
	// denied until Redis decides, each time with a RetryAfter of a second. In such a
	// decision Limit is the policy's, and Remaining is what this process would grant.
	// When Redis decides again, its own state counts; what was admitted without it is not
	// added.
	//
	// With 0, a process begins with nothing taken, grants the whole limit, and stores
	// only bans of what Redis reports. The first such decision in a process is logged as a
	// warning, to slog.Default. With 1, it grants all that is left. From 1 on, each
	// decision of Redis costs some 200 ns more, and memory: the process keeps what Redis
	// reported for the last MaxLocal pairs of subject and policy, in less than 512 bytes
	// each.
	Instances int
	// MaxLocal is how many states this process keeps, one for each subject and policy. If
	// there are more, the state that was unused longest is forgotten, and its subject
	// begins anew. 0 means 100,000. It must be at least one for each policy. The process
	// knows of as many bans, whatever the states are; of more bans, it forgets the one
	// that ends soonest. It knows of as many bans that were lifted.
	//
	// Together the states take less than 512 bytes for each of MaxLocal, whatever the
	// subjects are. Sliding logs store every permit, so fewer of them are kept.
	//
	// MaxLocal bounds each of these by itself: the states, what Redis reported, the
	// denials that are remembered, and the accounts of prepaid permits. Each bound holds
	// however many subjects, plans of With, or pairs of both there are. Permits of an
	// account that was forgotten are given back when their Term ends.
	MaxLocal int
	// MaxWaiting is how many callers may be in Wait at once, of the limiter and of those
	// that With made from it together. 0 means 1,000.
	MaxWaiting int
	// RememberDenials is how long this process repeats a denial without asking Redis: 2
	// ms to a minute; 0 repeats none. Use 100 ms if unsure.
	//
	// A denial covers its own cost and larger ones. It ends before that cost could be
	// granted: earlier by 1 ms and by a thousandth of its RetryAfter. So a denial with a
	// RetryAfter of less than 2 ms is not repeated. If another process, or another
	// limiter that New made, refunds, resets or lifts a ban, this process may deny for up
	// to RememberDenials longer.
	//
	// A repeated denial costs no round trip. Its figures are those of the last answer,
	// aged. Under a [SlidingLog] more than Remaining may be left, and sooner than NextAfter
	// says, because the answer did not say when each permit leaves. At most MaxLocal
	// denials are kept. Peek, requests of cost 0 and decisions without Redis neither use
	// denials nor add any. If the limiter has a [Ban], only bans are repeated.
	RememberDenials time.Duration
	// Holds lets [Limiter.Hold] put a subject on hold. It costs each decision a read of one
	// more key in Redis. All processes that share the limiter must have it.
	Holds bool
	// Overrides lets [Limiter.Override] give a subject other policies. Each policy must be in
	// [KeepOnChange], and none can be of a type of your own. It costs each decision a read of
	// one more key in Redis, and a cost above the limit a call of Redis. All processes that
	// share the limiter must have it.
	Overrides bool
	// Prepaid charges several permits at once. The zero value charges each decision by
	// itself.
	Prepaid Prepaid
}

// withDefaults returns a checked copy of the options with the defaults filled in.
func (o *Options) withDefaults(in inside.Store) (Options, error) {
	var own Options
	if o != nil {
		own = *o
	}
	var c options.Check
	c.Duration("Budget", &own.Budget, time.Millisecond, time.Hour, in.Budget(DefaultBudget))
	c.Positive("MaxLocal", &own.MaxLocal, defaultMaxLocal)
	c.Positive("MaxWaiting", &own.MaxWaiting, defaultMaxWaiting)
	prepaid, fault := own.Prepaid.withDefaults()
	own.Prepaid = prepaid
	if own.Holds && prepaid.Most > 0 {
		c.Faultf("Holds is set with Prepaid: leave out one of them, since a process would grant to a subject on hold what it had charged before")
	}
	if own.Overrides && prepaid.Most > 0 {
		c.Faultf("Overrides is set with Prepaid: leave out one of them, since a process would grant what it had charged before by other policies")
	}
	return own, errors.Join(c.Err(), ask.CheckFail(own.Fail), checkInstances(own.Instances), checkRemember(own.RememberDenials), fault)
}

// These are the shortest and the longest RememberDenials. The margins for clocks would
// leave nothing of a shorter one.
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

// compile makes the policies ready to use.
func (o *Options) compile(policies []Policy) ([]*kind.Rule, error) {
	kept, fault := o.Prepaid.policies(policies)
	rules, err := compile(kept)
	if o.Overrides && err == nil {
		fault = errors.Join(fault, checkReplaceable(policies))
	}
	return rules, errors.Join(err, fault)
}

// checkLocal refuses a MaxLocal that has no room for the states of one subject: its
// policies would evict each other.
func checkLocal(most int, rules []*kind.Rule) error {
	if most >= len(rules) {
		return nil
	}
	return fmt.Errorf("MaxLocal is %d: it must be at least %d, a state for each policy", most, len(rules))
}
