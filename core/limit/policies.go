package limit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Policies is a list of policies that can be read from configuration: a flag
// ([flag.TextVar]), an environment variable, JSON or YAML. It can be passed to New as it is.
// [ParsePolicy] says how a policy is written.
//
// As text, policies are separated by semicolons or line breaks, and a # begins a comment
// that reaches to the end of the line:
//
//	bucket 10/1s burst 20
//	window 10000/24h name daily kept # a day from the first request
//
// JSON and YAML have such a text, or a list of texts with one policy each.
type Policies []Policy //nolint:recvcheck // it is read through a pointer and written as a value

var errNilPolicies = errors.New("limit: a nil *Policies: pass the address of a list")

// String writes the policies as MarshalText does. If a policy has no text, String writes its
// name instead.
func (p Policies) String() string {
	texts := make([]string, len(p))
	for i, policy := range p {
		if isNil(policy) {
			texts[i] = "nil"
		} else if d, ok := draftOf(policy); ok {
			texts[i] = d.text()
		} else {
			texts[i] = policy.PolicyName()
		}
	}
	return strings.Join(texts, "; ")
}

// MarshalText writes the policies on one line, so that UnmarshalText reads them. The error
// joins the faults of policies that New would refuse, and of those whose type is your own.
func (p Policies) MarshalText() ([]byte, error) {
	var faults []error
	for i, policy := range p {
		_, err := checked(policy)
		if _, ok := draftOf(policy); err == nil && !ok {
			err = fmt.Errorf("%T is not of this package, so it has no text: use the policies of package limit", bare(policy))
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("limit.Policies: policies[%d]: %w", i, err))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return []byte(p.String()), nil
}

// UnmarshalText reads policies. The error joins the faults of all of them, and the list then
// stays as it was. No policy is no fault here; New refuses an empty list.
func (p *Policies) UnmarshalText(text []byte) error {
	var texts []string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		for part := range strings.SplitSeq(line, ";") {
			if part = strings.TrimSpace(part); part != "" {
				texts = append(texts, part)
			}
		}
	}
	return p.parse(texts)
}

// UnmarshalJSON reads a text, or a list of texts with one policy each. Null changes nothing.
func (p *Policies) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	return p.decode(func(v any) error { return json.Unmarshal(data, v) })
}

// UnmarshalYAML reads a text, or a list of texts with one policy each. It has the form that
// go.yaml.in/yaml and goccy/go-yaml call.
func (p *Policies) UnmarshalYAML(unmarshal func(any) error) error { return p.decode(unmarshal) }

func (p *Policies) decode(into func(any) error) error {
	var texts []string
	if into(&texts) == nil {
		return p.parse(texts)
	}
	var text string
	if err := into(&text); err != nil {
		return fmt.Errorf("limit.Policies: write a list of texts, such as [\"bucket 10/1s burst 20\"], or one text: %w", err)
	}
	return p.UnmarshalText([]byte(text))
}

func (p *Policies) parse(texts []string) error {
	if p == nil {
		return errNilPolicies
	}
	var faults []error
	all := make(Policies, len(texts))
	for i, text := range texts {
		var err error
		if all[i], err = parsePolicy(text); err != nil {
			for _, fault := range faultsOf(err) {
				faults = append(faults, fmt.Errorf("limit.Policies: policies[%d], %.80q: %w", i, text, fault))
			}
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	*p = all
	return nil
}
