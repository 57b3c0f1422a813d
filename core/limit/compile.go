package limit

import (
	"errors"
	"fmt"

	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/limit/internal/kind"
)

// compile checks the policies and their names, and reports every fault. It returns the
// enforced policies before the shadow policies.
func compile(policies []Policy) ([]*kind.Rule, error) {
	if len(policies) == 0 {
		return nil, errors.New("policies is empty: give at least one Policy")
	}
	var faults []error
	rules := make([]*kind.Rule, 0, len(policies))
	var shadows, all []*kind.Rule
	seen := make(map[string]bool, len(policies))
	for i, p := range policies {
		if isNil(p) {
			faults = append(faults, fmt.Errorf("policies[%d] is nil: give a Policy", i))
			continue
		}
		r, err := checked(p)
		name := p.PolicyName()
		if err == nil && seen[name] {
			err = fmt.Errorf("Name %q is used twice: give each policy a Name of its own", name)
		}
		seen[name] = true
		if err != nil {
			for _, fault := range faultsOf(err) {
				faults = append(faults, fmt.Errorf("policies[%d] (%T): %w", i, bare(p), fault))
			}
			continue
		}
		r.QuotaUnit = unitOf(p)
		if !r.Once {
			all = append(all, r)
		}
		if !r.Once && r.QuotaUnit != all[0].QuotaUnit {
			faults = append(faults, fmt.Errorf(
				"policies[%d] (%T): Unit is %q, and another policy's is %q: a limiter charges each policy with the same cost, so give all of them one Unit",
				i, bare(p), r.QuotaUnit, all[0].QuotaUnit))
		}
		if r.Shadow {
			shadows = append(shadows, r)
		} else {
			rules = append(rules, r)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return append(rules, shadows...), nil
}

// checked returns the rule of a policy by itself, or every fault of it.
func checked(p Policy) (*kind.Rule, error) {
	if isNil(p) {
		return nil, errors.New("it is nil: give a Policy")
	}
	r, err := p.compile(false)
	return r, errors.Join(err, keyspace.CheckName("Name", p.PolicyName()), checkUnit(p.quotaUnit()))
}

// unitOf returns the unit of a policy, with "" for requests.
func unitOf(p Policy) string {
	if unit := p.quotaUnit(); unit != UnitRequests {
		return unit
	}
	return ""
}

// checkUnit allows in a unit the characters of a name. They need no escaping in a String
// of a Structured Field (RFC 9651 section 3.3.3).
func checkUnit(unit string) error {
	if unit == "" {
		return nil
	}
	return keyspace.CheckName("Unit", unit)
}

// faultsOf returns the errors that err joins, or err itself.
func faultsOf(err error) (faults []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, fault := range joined.Unwrap() {
		faults = append(faults, faultsOf(fault)...)
	}
	return faults
}

// ruleOf returns the rule of a policy without terms.
func ruleOf(p interface {
	PolicyName() string
	signature() string
	form() (name, form string)
}, keeps bool, by kind.Algorithm, err error,
) (*kind.Rule, error) {
	name, form := p.form()
	if keeps && name == "" {
		err = errors.Join(errors.New("Name is empty: KeepOnChange needs a Name, because the numbers are not part of the key"), err)
	}
	if err != nil {
		return nil, err
	}
	signature := p.signature()
	if keeps {
		r := kind.NewRule(name, name+"!kept-"+form, by)
		r.Kept = signature
		return r, nil
	}
	name = p.PolicyName()
	tail := signature
	if name != tail {
		tail = name + "!" + tail
	}
	return kind.NewRule(name, tail, by), nil
}
