package callback

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// tolerance is the largest age of a signature, and the longest that it may be ahead of
// this clock. The libraries of Standard Webhooks have this bound in both directions.
// Stripe's have it for the age, and accept any time ahead.
const tolerance = 5 * time.Minute

var errSignature = errors.New("no signature fits")

// VerifyStripe returns a Verify that proves the header field Stripe-Signature by one of
// the endpoint's secrets. There are two secrets while one is being replaced. A signature
// is refused if it is more than 5 minutes old, or more than 5 minutes ahead of this clock
// (https://docs.stripe.com/webhooks#verify-manually).
//
// VerifyStripe returns an error if there is no secret, if one has white space around it, or
// if one does not begin with whsec_, such as an API key.
func VerifyStripe(secrets ...string) (Verify, error) {
	if err := stripeSecrets.check("VerifyStripe", secrets); err != nil {
		return nil, err
	}
	return func(_ context.Context, d *Delivery) ([]byte, error) {
		field, err := single(d, "Stripe-Signature")
		if err != nil {
			return nil, err
		}
		var stamp string
		var signatures []string
		for part := range strings.SplitSeq(field, ",") {
			switch name, value, _ := strings.Cut(part, "="); {
			case name == "t" && stamp != "":
				return nil, errors.New("Stripe-Signature has two timestamps")
			case name == "t":
				stamp = value
			case name == "v1":
				signatures = append(signatures, value)
			}
		}
		if err := recent("Stripe-Signature", stamp); err != nil {
			return nil, err
		}
		return d.Body, signed(secrets, signatures, []byte(stamp+"."), d.Body)
	}, nil
}

// VerifyGitHub returns a Verify that proves the header field X-Hub-Signature-256 by one
// of the webhook's secrets. The signature is of the body alone: it proves neither the
// event's name in X-GitHub-Event nor the X-GitHub-Delivery
// (https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries).
//
// VerifyGitHub returns an error if there is no secret, if one is empty or has white space
// around it, or if one is an access token or a private key of GitHub's.
func VerifyGitHub(secrets ...string) (Verify, error) {
	if err := gitHubSecrets.check("VerifyGitHub", secrets); err != nil {
		return nil, err
	}
	return func(_ context.Context, d *Delivery) ([]byte, error) {
		field, err := single(d, "X-Hub-Signature-256")
		if err != nil {
			return nil, err
		}
		signature, ok := strings.CutPrefix(field, "sha256=")
		if !ok {
			return nil, errors.New("X-Hub-Signature-256 does not begin with sha256=")
		}
		return d.Body, signed(secrets, []string{signature}, d.Body)
	}, nil
}

// VerifyStandardWebhooks returns a Verify that proves webhook-id, webhook-timestamp and
// body by the header field webhook-signature and one of the endpoint's secrets, which
// begin with whsec_. It uses the library of the Standard Webhooks specification. The fields
// may also be svix-id and so on, as Svix spells them. If both spellings of a field are there
// and differ, the delivery is refused: only one of the two is signed.
//
// A signature is refused if it is more than 5 minutes old, or more than 5 minutes ahead
// of this clock. A webhook-id with a full stop in it, which the specification forbids, is
// refused too. The three are signed with full stops between them, so one signature would
// otherwise prove many events.
//
// VerifyStandardWebhooks returns an error if there is no secret, if one is empty or has
// white space around it, if one is a key of the asymmetric scheme, no base64, or shorter
// than the specification's 24 bytes.
func VerifyStandardWebhooks(secrets ...string) (Verify, error) {
	if err := standardSecrets.check("VerifyStandardWebhooks", secrets); err != nil {
		return nil, err
	}
	keys := make([]*standardwebhooks.Webhook, len(secrets))
	for i, secret := range secrets {
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
		switch {
		case err != nil:
			return nil, fmt.Errorf("callback.VerifyStandardWebhooks: secret %d is no base64: copy it from the sender, whsec_ included", i)
		case len(raw) < minStandardSecret:
			return nil, fmt.Errorf("callback.VerifyStandardWebhooks: secret %d has %d bytes: the specification asks for at least %d",
				i, len(raw), minStandardSecret)
		}
		if keys[i], err = standardwebhooks.NewWebhookRaw(raw); err != nil {
			return nil, fmt.Errorf("callback.VerifyStandardWebhooks: secret %d: %w", i, err)
		}
	}
	return func(_ context.Context, d *Delivery) ([]byte, error) {
		header, err := standardHeader(d)
		if err != nil {
			return nil, err
		}
		err = errSignature
		for _, key := range keys {
			if err = key.Verify(d.Body, header); err == nil {
				return d.Body, nil
			}
		}
		return nil, err
	}, nil
}

// recent returns nil if the time of a signature, in seconds since 1970, is within the
// tolerance.
func recent(field, stamp string) error {
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return fmt.Errorf("%s has no timestamp", field)
	}
	if age := time.Since(time.Unix(seconds, 0)); age > tolerance || age < -tolerance {
		return fmt.Errorf("%s is %v old", field, age.Round(time.Second))
	}
	return nil
}

func single(d *Delivery, name string) (string, error) {
	lines := d.Header.Values(name)
	if len(lines) != 1 {
		return "", fmt.Errorf("the header field %s is there %d times", name, len(lines))
	}
	return lines[0], nil
}

// signed returns nil if one of the signatures is the HMAC-SHA-256 of the parts under one
// of the secrets. It compares in constant time.
func signed(secrets, signatures []string, parts ...[]byte) error {
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		for _, part := range parts {
			mac.Write(part)
		}
		want := mac.Sum(nil)
		for _, signature := range signatures {
			got, err := hex.DecodeString(signature)
			if err == nil && hmac.Equal(got, want) {
				return nil
			}
		}
	}
	return errSignature
}
