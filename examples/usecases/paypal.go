package usecases

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/neap-go/neap/core/callback"
)

// PayPalVerify proves the body as it came, by a certificate of PayPal's: nothing is
// parsed and written anew. webhookID is your webhook's, as the dashboard has it.
// https://developer.paypal.com/api/rest/webhooks/rest/
func PayPalVerify(webhookID string, certs *PayPalCerts) callback.Verify {
	return func(ctx context.Context, d *callback.Delivery) ([]byte, error) {
		if d.Header.Get("Paypal-Auth-Algo") != "SHA256withRSA" {
			return nil, errors.New("it is not signed by SHA256withRSA")
		}
		signature, err := base64.StdEncoding.DecodeString(d.Header.Get("Paypal-Transmission-Sig"))
		if err != nil {
			return nil, err
		}
		cert, err := certs.Get(ctx, d.Header.Get("Paypal-Cert-Url"))
		if err != nil {
			return nil, err
		}
		signed := fmt.Sprintf("%s|%s|%s|%d", d.Header.Get("Paypal-Transmission-Id"),
			d.Header.Get("Paypal-Transmission-Time"), webhookID, crc32.ChecksumIEEE(d.Body))
		return d.Body, cert.CheckSignature(x509.SHA256WithRSA, []byte(signed), signature)
	}
}

// PayPalLookup believes what PayPal's API says of the event, and of the delivery
// only its id. An event that the API does not know yet is not verified yet. api adds your
// access token to what it sends, and has a Timeout of two seconds or so; base is
// https://api-m.paypal.com, or the sandbox's.
func PayPalLookup(verify callback.Verify, api *http.Client, base string) callback.Verify {
	return func(ctx context.Context, d *callback.Delivery) ([]byte, error) {
		body, err := verify(ctx, d)
		if err != nil {
			return nil, err
		}
		var sent, known struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(body, &sent); err != nil {
			return nil, err
		}
		event, err := get(ctx, api, base+"/v1/notifications/webhooks-events/"+url.PathEscape(sent.ID))
		if errors.Is(err, errAbsent) {
			return nil, fmt.Errorf("%w: %w", callback.ErrCannotVerify, err)
		}
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(event, &known); err != nil || known.ID == "" || known.ID != sent.ID {
			return nil, errors.New("PayPal has no event of this id")
		}
		return event, nil
	}
}

// PayPalCerts has the certificates that PayPal signs with. It fetches each once,
// from PayPal's host alone, and is safe for concurrent use.
type PayPalCerts struct {
	prefix string
	client *http.Client
	roots  *x509.CertPool
	slots  chan struct{} // for what is fetched: a stranger can name many

	mu    sync.Mutex
	known map[string]*x509.Certificate
}

// NewPayPalCerts fetches from a host: api.paypal.com, or api.sandbox.paypal.com.
// transport is http.DefaultTransport, unless you need another. The certificates'
// chains end at roots, or at the system's where it is nil.
func NewPayPalCerts(host string, transport http.RoundTripper, roots *x509.CertPool) *PayPalCerts {
	return &PayPalCerts{
		prefix: "https://" + host + "/v1/notifications/certs/",
		client: &http.Client{
			Transport: transport, Timeout: 2 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		roots: roots, slots: make(chan struct{}, 4), known: map[string]*x509.Certificate{},
	}
}

var certName = regexp.MustCompile(`^[A-Za-z0-9-]{1,100}$`)

// Get is the certificate at a link that a delivery names. Where PayPal does not
// answer, or with none that is to be believed, the error is
// callback.ErrCannotVerify.
func (c *PayPalCerts) Get(ctx context.Context, link string) (*x509.Certificate, error) {
	name, ok := strings.CutPrefix(link, c.prefix)
	if !ok || !certName.MatchString(name) {
		return nil, errors.New("the certificate is not one of PayPal's")
	}
	if cert := c.has(name); cert != nil {
		return cert, nil
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", callback.ErrCannotVerify, ctx.Err())
	}
	if cert := c.has(name); cert != nil { // another delivery has fetched it meanwhile
		return cert, nil
	}
	text, err := get(ctx, c.client, link)
	if err != nil {
		return nil, err
	}
	cert, err := c.believe(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", callback.ErrCannotVerify, err)
	}
	c.keep(name, cert)
	return cert, nil
}

func (c *PayPalCerts) has(name string) *x509.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cert := c.known[name]; cert != nil && time.Now().Before(cert.NotAfter) {
		return cert
	}
	return nil
}

// keep has room for more certificates than PayPal uses at a time.
func (c *PayPalCerts) keep(name string, cert *x509.Certificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= 16 {
		clear(c.known)
	}
	c.known[name] = cert
}

// believe takes the first certificate of a PEM file, whose chain the others are part
// of.
func (c *PayPalCerts) believe(text []byte) (*x509.Certificate, error) {
	var leaf *x509.Certificate
	others := x509.NewCertPool()
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		switch {
		case err != nil:
			return nil, err
		case leaf == nil:
			leaf = cert
		default:
			others.AddCert(cert)
		}
	}
	if leaf == nil || !strings.HasSuffix(leaf.Subject.CommonName, ".paypal.com") {
		return nil, errors.New("it is no certificate of PayPal's")
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: c.roots, Intermediates: others, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	return leaf, err
}

var errAbsent = errors.New("PayPal has no such thing")

// get is what PayPal has at a link. A 404 is errAbsent; any other failure says nothing.
func get(ctx context.Context, client *http.Client, link string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", callback.ErrCannotVerify, err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, errAbsent
	default:
		return nil, fmt.Errorf("%w: PayPal answers %d", callback.ErrCannotVerify, response.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, callback.DefaultMaxBody+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", callback.ErrCannotVerify, err)
	case len(text) > callback.DefaultMaxBody: // what is cut says nothing
		return nil, fmt.Errorf("%w: PayPal answers more than %d bytes", callback.ErrCannotVerify, callback.DefaultMaxBody)
	}
	return text, nil
}
