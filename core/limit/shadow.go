package limit

import "reflect"

// shadowed is a policy that is decided and reported, and not enforced.
type shadowed struct{ Policy }

// Shadow returns a policy that is decided and reported and never enforced, so that you
// see what it would do before it does it. It is decided in the same call as the others.
// It has the same key as if it were enforced, so when you enforce it, it keeps what it
// has counted.
//
// A shadow policy is charged only if the enforced policies admit the request and it would
// admit it too. Its State shows that. It changes no other figure of a Decision. A cost
// above its capacity is not an error: the shadow policy would deny it, and its RetryAfter
// is that of its whole capacity.
//
// A limiter with shadow policies alone admits every request, and its Decisions name no
// Policy. The Shadow of a Shadow is the same policy.
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
