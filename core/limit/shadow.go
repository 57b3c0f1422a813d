package limit

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
func Shadow(p Policy) Policy { return with(p, func(t *terms) { t.shadow = true }) }
