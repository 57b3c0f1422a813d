package limit

import (
	"fmt"

	"github.com/neap-go/neap/core/limit/internal/kind"
)

// Policy is one of [TokenBucket], [FixedWindow], [SlidingWindow], [SlidingLog] and
// [CalendarWindow], or a type of your own that embeds one.
//
// Name appears in the RateLimit header fields and in Redis keys. It has up to 64 letters,
// digits, dots, dashes and underscores. If it is empty, the policy's numbers make the
// name. If you change a policy's numbers, a fresh state begins, so that instances of two
// versions never misread each other's state. [KeepOnChange] keeps the state.
//
// Unit tells clients what a permit is, in the RateLimit header fields: for example
// "content-bytes" if the cost of a request is the length of its body. The same characters
// are allowed as in a name. Empty means requests. The Unit is not part of the key, so a
// change of it keeps what was counted. Every policy of a limiter has the same Unit,
// because each decision charges all of them with the same cost; [PerRequest] is the
// exception.
type Policy interface {
	// PolicyName returns the name that decisions report.
	PolicyName() string

	// compile returns the rule, whose state is kept when the numbers change if keeps is true.
	compile(keeps bool) (*kind.Rule, error)
	quotaUnit() string
	// prepay returns the policy as it is counted if permits are charged ahead.
	prepay(by Prepaid) (Policy, error)
}

// These units are defined by draft-ietf-httpapi-ratelimit-headers-11, section 3.1.2.
const (
	UnitRequests     = "requests"
	UnitContentBytes = "content-bytes"
)

// debt returns the part of a signature that MaxDebt adds. With another MaxDebt, a stored
// state would be misread.
func debt(most int64) string {
	if most == 0 {
		return ""
	}
	return fmt.Sprintf("-debt-%d", most)
}

func nameOr(name, signature string) string {
	if name == "" {
		return signature
	}
	return name
}
