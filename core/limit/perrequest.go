package limit

// PerRequest returns a policy that counts each request as 1, whatever its cost is. Use it
// beside policies that count the cost: for example 100,000 tokens a minute and 60
// requests a minute, in one decision. TakeN(0) is not counted as a request.
//
// The policy has the same key as p by itself, is not settled, and may have another Unit
// than the others. It cannot be [Prepaid]. In a [Decision], the policy that binds is the
// one that admits the fewest further requests of the same cost. The PerRequest of a
// PerRequest is the same policy.
func PerRequest(p Policy) Policy { return with(p, func(t *terms) { t.perRequest = true }) }
