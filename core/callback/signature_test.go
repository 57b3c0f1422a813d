package callback_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/callback"
)

// at runs a test at the given second since 1970.
func at(t *testing.T, second int64, run func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Unix(second, 0)))
		run(t)
	})
}

func signedDelivery(body string, header ...string) *callback.Delivery {
	d := &callback.Delivery{Method: "POST", Path: "/", Header: http.Header{}, Body: []byte(body)}
	for i := 0; i < len(header); i += 2 {
		d.Header.Add(header[i], header[i+1])
	}
	return d
}

// verified reports whether a delivery is proven. It fails the test if the delivery is
// proven and the payload is not its body.
func verified(t *testing.T, v callback.Verify, d *callback.Delivery) bool {
	t.Helper()
	payload, err := v(t.Context(), d)
	if err == nil && string(payload) != string(d.Body) {
		t.Errorf("got the payload %q, want the body %q", payload, d.Body)
	}
	return err == nil
}

func must(t *testing.T, make func(...string) (callback.Verify, error), secrets ...string) callback.Verify {
	t.Helper()
	v, err := make(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The vector is from GitHub's documentation.
func TestGitHubSignature(t *testing.T) {
	t.Parallel()
	const secret, body = "It's a Secret to Everybody", "Hello, World!"
	const good = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	const name = "X-Hub-Signature-256"
	v := must(t, callback.VerifyGitHub, secret)
	rotated := must(t, callback.VerifyGitHub, "the new one", secret)
	for _, c := range []struct {
		verify callback.Verify
		d      *callback.Delivery
		want   bool
	}{
		{v, signedDelivery(body, name, good), true},
		{rotated, signedDelivery(body, name, good), true},
		{must(t, callback.VerifyGitHub, "another"), signedDelivery(body, name, good), false},
		{v, signedDelivery(body+" ", name, good), false},
		{v, signedDelivery(body, name, strings.TrimPrefix(good, "sha256=")), false},
		{v, signedDelivery(body, name, strings.Replace(good, "256=", "1=", 1)), false},
		{v, signedDelivery(body, name, good[:len(good)-2]), false},
		{v, signedDelivery(body, name, "sha256="), false},
		{v, signedDelivery(body, name, "sha256=zz"), false},
		{v, signedDelivery(body), false},
		{v, signedDelivery(body, name, good, name, good), false},
	} {
		if got := verified(t, c.verify, c.d); got != c.want {
			t.Errorf("%v: got it proven %t, want %t", c.d.Header, got, c.want)
		}
	}
}

func stripeSignature(secret, stamp, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stamp + "." + body))
	return hex.EncodeToString(mac.Sum(nil))
}

// Stripe publishes no vector with its secret. The scheme is that of its documentation on
// how to verify by hand.
func TestStripeSignature(t *testing.T) {
	t.Parallel()
	const secret, body, now = "whsec_test", `{"id":"evt_1"}`, 1_700_000_000
	const name = "Stripe-Signature"
	at(t, now, func(t *testing.T) {
		v := must(t, callback.VerifyStripe, "whsec_new", secret)
		field := func(stamp int64, secret string) string {
			text := fmt.Sprint(stamp)
			return "t=" + text + ",v1=" + stripeSignature(secret, text, body) + ",v0=ignored"
		}
		good := field(now, secret)
		for _, c := range []struct {
			field string
			want  bool
		}{
			{good, true},
			{field(now, "whsec_new"), true},
			{field(now, "another"), false},
			{field(now-300, secret), true},
			{field(now-301, secret), false},
			{field(now+300, secret), true},
			{field(now+301, secret), false},
			{strings.Replace(good, "v1=", "v1=00,v1=", 1), true},
			{strings.Replace(good, "v1=", "v0=", 1), false},
			{strings.Replace(good, "t=", "t=1", 1), false},
			{"t=1," + good, false},
			{strings.TrimPrefix(good, fmt.Sprintf("t=%d,", now)), false},
			{"", false}, {"t=,v1=", false}, {"t=x", false},
		} {
			if got := verified(t, v, signedDelivery(body, name, c.field)); got != c.want {
				t.Errorf("%q: got it proven %t, want %t", c.field, got, c.want)
			}
		}
		if verified(t, v, signedDelivery(body+" ", name, good)) || verified(t, v, signedDelivery(body)) ||
			verified(t, v, signedDelivery(body, name, good, name, good)) {
			t.Error("got a delivery with another body, no signature or two signatures proven, want it refused")
		}
	})
}

// The vector is from the Standard Webhooks specification.
func TestStandardWebhooksSignature(t *testing.T) {
	t.Parallel()
	const (
		secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
		other  = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
		id     = "msg_p5jXN8AQM9LWM0D4loKWxJek"
		body   = `{"test": 2432232314}`
		good   = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
		now    = 1614265330
	)
	fields := func(id, stamp, signature string) []string {
		return []string{"webhook-id", id, "webhook-timestamp", stamp, "webhook-signature", signature}
	}
	for second, fresh := range map[int64]bool{now: true, now + 299: true, now + 301: false, now - 301: false} {
		at(t, second, func(t *testing.T) {
			v := must(t, callback.VerifyStandardWebhooks, other, secret)
			if got := verified(t, v, signedDelivery(body, fields(id, fmt.Sprint(now), good)...)); got != fresh {
				t.Errorf("at %d: got it proven %t, want %t", second, got, fresh)
			}
		})
	}
	at(t, now, func(t *testing.T) {
		v := must(t, callback.VerifyStandardWebhooks, secret)
		stamp := fmt.Sprint(now)
		if !verified(t, v, signedDelivery(body, fields(id, stamp, "v1,AAAA v1a,x "+good)...)) {
			t.Error("several signatures, one of them true: got it refused, want it proven")
		}
		for _, d := range []*callback.Delivery{
			signedDelivery(body+" ", fields(id, stamp, good)...),
			signedDelivery(body, fields(id+"x", stamp, good)...),
			signedDelivery(body, fields(id, fmt.Sprint(now+1), good)...),
			signedDelivery(body, fields(id, stamp, "v2"+good[2:])...),
			signedDelivery(body, fields(id, stamp, good)[2:]...),
			signedDelivery(body, append(fields(id, stamp, good), "webhook-id", "another")...),
			signedDelivery(body, append(fields(id, stamp, "v1,AAAA"), "webhook-signature", good)...),
		} {
			if verified(t, v, d) {
				t.Errorf("%v: got it proven, want it refused", d.Header)
			}
		}
	})
}

func TestSecretsAreRequired(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(...string) (callback.Verify, error){
		"VerifyStripe": callback.VerifyStripe, "VerifyGitHub": callback.VerifyGitHub,
		"VerifyStandardWebhooks": callback.VerifyStandardWebhooks, "VerifyShopify": callback.VerifyShopify,
	} {
		for _, secrets := range [][]string{
			nil, {""}, {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", " "}, {"whsec_"}, {"whsec_\n"}, {" whsec_ \t"},
		} {
			_, err := make(secrets...)
			if err == nil || !strings.Contains(err.Error(), name) || secrets != nil && !strings.Contains(err.Error(), "is empty") {
				t.Errorf("%s with %q: got %v, want an error that names it", name, secrets, err)
			}
		}
	}
	const standard = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	for _, c := range []struct {
		make         func(...string) (callback.Verify, error)
		secret, want string
	}{
		{callback.VerifyStripe, "sk_live_51Hx", "does not begin with whsec_"},
		{callback.VerifyStripe, "rk_test_51Hx", "does not begin with whsec_"},
		{callback.VerifyStripe, "we_1Nx", "does not begin with whsec_"},
		{callback.VerifyStripe, "whsec_x\n", "white space around it"},
		{callback.VerifyStripe, " whsec_x", "white space around it"},
		{callback.VerifyGitHub, "ghp_x", "begins with ghp_"},
		{callback.VerifyGitHub, "github_pat_x", "begins with github_pat_"},
		{callback.VerifyGitHub, "-----BEGIN RSA PRIVATE KEY-----\nx", "begins with -----BEGIN"},
		{callback.VerifyGitHub, "x\r\n", "white space around it"},
		{callback.VerifyShopify, "shpat_x", "begins with shpat_"},
		{callback.VerifyShopify, "shpca_x", "begins with shpca_"},
		{callback.VerifyShopify, "shppa_x", "begins with shppa_"},
		{callback.VerifyShopify, "shpss_x\n", "white space around it"},
		{callback.VerifyStandardWebhooks, standard + "\n", "white space around it"},
		{callback.VerifyStandardWebhooks, "whpk_" + standard, "begins with whpk_"},
		{callback.VerifyStandardWebhooks, "whsk_" + standard, "begins with whsk_"},
		{callback.VerifyStandardWebhooks, "sk_live_51Hx", "is no base64"},
	} {
		_, err := c.make(standard, c.secret)
		if err == nil || !strings.Contains(err.Error(), "secret 1 "+c.want) && !strings.Contains(err.Error(), "secret 1 has "+c.want) || strings.Contains(err.Error(), "51Hx") {
			t.Errorf("%q: got %v, want it to say of secret 1 that it %s, without the secret", c.secret, err, c.want)
		}
	}
	if _, err := callback.VerifyStandardWebhooks("whsec_?"); err == nil || strings.Contains(err.Error(), "?") {
		t.Errorf("got %v, want an error without the secret", err)
	}
}

// A secret that can be guessed protects nothing. One that the specification calls too
// short is refused. The secret of its own vector is just long enough.
func TestShortSecrets(t *testing.T) {
	t.Parallel()
	for raw, fine := range map[string]bool{
		strings.Repeat("k", 1): false, strings.Repeat("k", 23): false, strings.Repeat("k", 24): true, strings.Repeat("k", 64): true,
	} {
		secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte(raw))
		_, err := callback.VerifyStandardWebhooks(secret)
		if (err == nil) != fine || err != nil && (!strings.Contains(err.Error(), "at least 24") || strings.Contains(err.Error(), secret[6:])) {
			t.Errorf("%d bytes: got %v, want it accepted (%t), or told to be 24 at least without the secret",
				len(raw), err, fine)
		}
	}
}

// One genuine signature proves one event. The signature does not say where the id ends.
// So text before a full stop could be moved into the id, and a number of the body could
// become the timestamp.
func TestStandardWebhooksFullStops(t *testing.T) {
	t.Parallel()
	const now, old = 1614265330, 1614000000
	key := []byte(strings.Repeat("k", 24))
	sign := func(content string) string {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(content))
		return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	const head, tail = `{"note":"x`, `{"type":"paid"}`
	at(t, now, func(t *testing.T) {
		v := must(t, callback.VerifyStandardWebhooks, "whsec_"+base64.StdEncoding.EncodeToString(key))
		for id, want := range map[string]bool{
			fmt.Sprintf("msg_1.%d.%s", old, head): false, "msg_1.2": false, "msg.": false, ".": false, "msg_1": true,
		} {
			d := signedDelivery(tail, "webhook-id", id, "webhook-timestamp", fmt.Sprint(now),
				"webhook-signature", sign(fmt.Sprintf("%s.%d.%s", id, now, tail)))
			if got := verified(t, v, d); got != want {
				t.Errorf("%q: got it proven %t, want %t", id, got, want)
			}
		}
	})
}
