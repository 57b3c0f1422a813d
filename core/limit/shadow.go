package limit

import "reflect"

// shadowed is a policy that is watched and not enforced.
type shadowed struct{ Policy }

// Shadow makes a policy that is reported and never enforced, to see what it
// would do before it does. It is decided in the same call as the others and
// keeps the same key as if it were enforced, so that turning it on keeps what
// it has counted. It takes only from requests that the enforced policies admit
// and that it would admit itself; its State says so. It changes no other
// figure of a Decision, and a cost above its capacity is no error: it would
// deny, with the RetryAfter of its whole capacity.
//
// A limiter with shadow policies alone admits every request, and its Decisions
// name no Policy. The Shadow of a Shadow is the same.
func Shadow(p Policy) Policy {
	if _, already := p.(shadowed); already || isNil(p) {
		return p
	}
	return shadowed{p}
}

func (s shadowed) compile() (rule, error) {
	r, err := s.Policy.compile()
	if err != nil {
		return nil, err
	}
	r.id().shadow = true
	return r, nil
}

func isNil(p Policy) bool {
	v := reflect.ValueOf(p)
	return p == nil || v.Kind() == reflect.Pointer && v.IsNil()
}
