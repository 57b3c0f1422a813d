package main

import (
	"errors"

	"github.com/neap-go/neap/core/limit"
)

// policy is a policy as the command line and tables write it, and the ends of its keys.
type policy struct {
	limit.Policy

	end, banEnd string // banEnd is empty if it has no ban
}

const policyForm = "write it as limit.ParsePolicy reads it, such as 'bucket 10/1s burst 20', with what the service adds: name NAME, debt N, " +
	"kept (KeepOnChange), ban 5/1m for 10m max 1h"

// readPolicy reads what --policy says.
func readPolicy(text string) (policy, error) {
	of, err := limit.ParsePolicy(text)
	if err != nil {
		return policy{}, usagef("--policy: %w", err)
	}
	return policyOf(of)
}

func policyOf(of limit.Policy) (policy, error) {
	end, banEnd, err := limit.KeysOfPolicy(of)
	return policy{of, end, banEnd}, err
}

// policyOfKey returns the policy of a key, which may be that of its ban.
func policyOfKey(end string) (policy, error) {
	of, b, err := limit.PolicyOfKey(end)
	if err != nil {
		return policy{}, err
	}
	if b != (limit.Ban{}) {
		of = limit.WithBan(of, b)
	}
	return policyOf(of)
}

func (p policy) bans() bool { return p.banEnd != "" }

func (p policy) kept() bool {
	_, err := policyOfKey(p.end)
	return errors.Is(err, limit.ErrKeyNumbers)
}

// String writes a policy so that readPolicy can read it.
func (p policy) String() string { return limit.Policies{p.Policy}.String() }
