package limit

import (
	"errors"
	"reflect"
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
)

// terms are what [KeepOnChange], [WithLease], [WithBan], [PerRequest] and [Shadow] say about a
// policy. Their order does not matter. Of two leases, or of two bans, the last one counts.
type terms struct {
	kept, leased, banned, perRequest, shadow bool

	lease time.Duration // if it is leased
	ban   Ban           // if it is banned
}

// termed is a policy with terms. The policy in it has none, unless a caller has embedded one that has
// in a type of its own; then the terms of both hold.
type termed struct {
	Policy

	terms terms
}

// with returns a policy with other terms.
func with(p Policy, change func(t *terms)) Policy {
	if isNil(p) {
		return p
	}
	of, is := p.(termed)
	if !is {
		of.Policy = p
	}
	change(&of.terms)
	return of
}

func (p termed) compile(keeps bool) (*kind.Rule, error) {
	t := &p.terms
	r, err := p.Policy.compile(keeps || t.kept)
	if err == nil && t.leased {
		err = checkLease(r, t)
	}
	var b *kind.Ban
	if t.banned {
		var fault error
		b, fault = kind.NewBan(t.ban.After, t.ban.Within, t.ban.For, t.ban.Max)
		err = errors.Join(err, fault)
	}
	if err != nil {
		return nil, err
	}
	r.Shadow, r.Once = r.Shadow || t.shadow, r.Once || t.perRequest
	if t.leased {
		r.Lease = t.lease.Truncate(time.Millisecond)
	}
	if b != nil {
		r.Ban = b
		b.Tail = r.Tail + "!" + t.ban.key()
	}
	if r.Once && r.Lease > 0 {
		return nil, errLeasedRequests
	}
	return r, nil
}

// bare returns a policy without its terms.
func bare(p Policy) Policy {
	if of, is := p.(termed); is {
		return of.Policy
	}
	return p
}

// valueOf returns a policy without pointers, because the numbers behind a pointer may
// change.
func valueOf(p Policy) Policy {
	if of, is := p.(termed); is {
		return termed{valueOf(of.Policy), of.terms}
	}
	if v := reflect.ValueOf(p); v.Kind() == reflect.Pointer && !v.IsNil() {
		if value, is := reflect.TypeAssert[Policy](v.Elem()); is {
			return value
		}
	}
	return p
}

// isNil reports whether there is no policy: also if a caller's own type has embedded none.
func isNil(p Policy) bool {
	if of, is := p.(termed); is {
		return isNil(of.Policy)
	}
	v := reflect.ValueOf(p)
	if !v.IsValid() {
		return true
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return true
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return false
	}
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Anonymous && f.IsExported() && f.Type.Implements(reflect.TypeFor[Policy]()) {
			embedded, _ := reflect.TypeAssert[Policy](v.Field(i))
			return isNil(embedded)
		}
	}
	return false
}
