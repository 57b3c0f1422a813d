package callback

import (
	"fmt"
	"strings"
)

const (
	secretPrefix = "whsec_" // in secrets of Stripe and of Standard Webhooks
	// minStandardSecret is the smallest number of bytes that the Standard Webhooks
	// specification allows.
	minStandardSecret = 24
)

// secretForm says which signing secrets a provider has.
type secretForm struct {
	prefix string   // each begins so; "" if a user chooses them
	others []string // with which the provider's keys begin that sign nothing
}

var (
	stripeSecrets = secretForm{prefix: secretPrefix}
	// https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github#githubs-token-formats
	gitHubSecrets   = secretForm{others: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "-----BEGIN"}}
	standardSecrets = secretForm{others: []string{"whsk_", "whpk_"}} // the prefix may be left out
)

// check finds secrets with which nothing could be verified, or that anybody knows. Its
// errors do not show them.
func (s secretForm) check(constructor string, all []string) error {
	if len(all) == 0 {
		return fmt.Errorf("callback.%s: no secrets; pass the endpoint's", constructor)
	}
	for i, secret := range all {
		fault := func(format string, args ...any) error {
			return fmt.Errorf("callback.%s: secret %d "+format, append([]any{constructor, i}, args...)...)
		}
		trimmed := strings.TrimSpace(secret)
		switch {
		case strings.TrimSpace(strings.TrimPrefix(trimmed, secretPrefix)) == "":
			return fault("is empty: anybody could sign with it")
		case trimmed != secret:
			return fault("has white space around it: remove it, such as the newline at the end of a file")
		case !strings.HasPrefix(secret, s.prefix):
			return fault("does not begin with %s: copy the signing secret of the endpoint, and no API key", s.prefix)
		}
		for _, other := range s.others {
			if strings.HasPrefix(secret, other) {
				return fault("begins with %s, so it signs no webhooks: copy the secret of the webhook", other)
			}
		}
	}
	return nil
}
