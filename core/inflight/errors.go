package inflight

import "errors"

// ErrSubject reports that the subject is empty. If one limit is for all callers, use a fixed
// subject such as "all".
var ErrSubject = errors.New("inflight: the subject is empty: if one limit is for all callers, use a fixed subject such as \"all\"")

// errLimiter reports a mistake in the calling program.
var errLimiter = errors.New("inflight: a nil or zero Limiter: make one with New or NewLocal, and check its error first")
