package limit

import (
	"fmt"
	"math"
	"time"

	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/limit/internal/kind"
)

// TokenBucket admits Rate permits per Per on average, and Burst at once: at most Burst +
// Rate·t/Per in any time t. It stores one key of some 100 bytes for each subject.
//
// Rate and Per are required, and Per is at least a millisecond. A zero Burst means Rate:
// with 1,000 an hour, 1,000 may come at once, and up to 2,000 within one hour. If your
// service cannot take that many, set a smaller Burst. A zero MaxDebt means no debt.
//
// The algorithm is the generic cell rate algorithm (ITU-T I.371), in integers, so that 3
// per second and 7 per minute never drift.
type TokenBucket struct {
	Name    string
	Rate    int64
	Per     time.Duration
	Burst   int64
	MaxDebt int64 // how far settled costs may exceed the Burst: see Decision.Settle
	Unit    string
}

// PolicyName returns Name, or a name made of the numbers if it is empty.
func (p TokenBucket) PolicyName() string { return nameOr(p.Name, p.signature()) }

func (p TokenBucket) quotaUnit() string { return p.Unit }

func (p TokenBucket) signature() string {
	return fmt.Sprintf("bucket-%d-%s-%d", p.Rate, keyspace.Span(p.Per), p.burst()) + debt(p.MaxDebt)
}

func (p TokenBucket) form() (name, form string) { return p.Name, "bucket" }

func (p TokenBucket) numbers() kind.Bucket {
	return kind.Bucket{Rate: p.Rate, Per: p.Per, Burst: p.Burst, MaxDebt: p.MaxDebt}
}

func (p TokenBucket) burst() int64 { return p.numbers().Most() }

func (p TokenBucket) compile(keeps bool) (*kind.Rule, error) {
	by, err := p.numbers().New(keeps)
	return ruleOf(p, keeps, by, err)
}

// prepay makes the Burst smaller by what refills while permits are held.
func (p TokenBucket) prepay(by Prepaid) (Policy, error) {
	if err := noDebt(p.MaxDebt); err != nil {
		return nil, err
	}
	if p.Rate < 1 || p.Per < time.Millisecond {
		return p, nil // compile reports the fault
	}
	refills := math.Ceil(float64(p.Rate) * float64(by.Term) / float64(p.Per))
	if refills > float64(p.burst()-1) {
		return nil, fmt.Errorf("Prepaid.Term is %v, in which %.0f permits refill: the Burst of %d must be larger; use a shorter Term or a larger Burst",
			by.Term, refills, p.burst())
	}
	p.Name = p.PolicyName()
	p.Burst = p.burst() - int64(refills)
	return p, nil
}
