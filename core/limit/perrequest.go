package limit

// perRequest is a policy that counts requests, whatever they cost.
type perRequest struct{ Policy }

// PerRequest makes a policy that counts each request as 1, whatever its cost is, beside others that
// count the cost: 100,000 tokens a minute and 60 requests a minute, in one decision. TakeN(0) is no request.
// It keeps the key that it would have by itself, is not settled, and may have another Unit than
// the others. It cannot be [Prepaid]. Of such policies the one binds that admits the fewest more requests
// of the same cost (see [Decision]). The PerRequest of a PerRequest is the same.
func PerRequest(p Policy) Policy {
	if _, already := p.(perRequest); already || isNil(p) {
		return p
	}
	return perRequest{p}
}

func (p perRequest) compile() (rule, error) {
	r, err := p.Policy.compile()
	if err != nil {
		return nil, err
	}
	if hasLease(r) {
		return nil, errLeasedRequests
	}
	r.id().once = true
	return r, nil
}
