package usecases

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/internal/gatefake"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/nethttp"
)

const (
	payPalHost = "api.paypal.com"
	certPath   = "/v1/notifications/certs/"
	certLink   = "https://" + payPalHost + certPath + "CERT-1"
	webhookID  = "8PT597110X687430"
)

// payPal signs as PayPal does, and serves what it serves.
type payPal struct {
	key, ca *rsa.PrivateKey
	roots   *x509.CertPool
	file    []byte // the certificate and its chain
	asked   atomic.Int64
	// answer is how it serves; nil serves the file as CERT-1 and nothing else.
	answer func(*http.Request) (*http.Response, error)
}

// certify makes a certificate of PayPal's, as change has it.
func (p *payPal) certify(t *testing.T, change func(*x509.Certificate)) {
	t.Helper()
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a root"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	between := *root
	between.SerialNumber, between.Subject.CommonName = big.NewInt(2), "an intermediate"
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: "messageverificationcerts.paypal.com"},
		NotBefore: root.NotBefore, NotAfter: root.NotAfter, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if change != nil {
		change(leaf)
	}
	var file bytes.Buffer
	var rootOf *x509.Certificate
	for _, c := range []struct {
		cert, by *x509.Certificate
		key      *rsa.PrivateKey
	}{{leaf, &between, p.key}, {&between, root, p.ca}, {root, root, p.ca}} {
		der, err := x509.CreateCertificate(rand.Reader, c.cert, c.by, &c.key.PublicKey, p.ca)
		if err != nil {
			t.Fatal(err)
		}
		if c.cert != root { // which is not sent
			err = pem.Encode(&file, &pem.Block{Type: "CERTIFICATE", Bytes: der})
		} else {
			rootOf, err = x509.ParseCertificate(der)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p.file, p.roots = file.Bytes(), x509.NewCertPool()
	p.roots.AddCert(rootOf)
}

var newKeys = sync.OnceValues(func() ([]*rsa.PrivateKey, error) {
	leaf, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	ca, err := rsa.GenerateKey(rand.Reader, 2048)
	return []*rsa.PrivateKey{leaf, ca}, err
})

func newPayPal(t *testing.T) *payPal {
	t.Helper()
	keys, err := newKeys()
	if err != nil {
		t.Fatal(err)
	}
	p := &payPal{key: keys[0], ca: keys[1]}
	p.certify(t, nil)
	return p
}

func (p *payPal) RoundTrip(r *http.Request) (*http.Response, error) {
	p.asked.Add(1)
	if p.answer != nil {
		return p.answer(r)
	}
	if r.URL.String() == certLink {
		return says(200, string(p.file)), nil
	}
	return says(404, ""), nil
}

func says(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

func (p *payPal) certs() *PayPalCerts { return NewPayPalCerts(payPalHost, p, p.roots) }

// sends is a delivery as PayPal signs it.
func (p *payPal) sends(t *testing.T, body string) *callback.Delivery {
	t.Helper()
	text := fmt.Sprintf("69cd13f0|2026-11-22T10:00:00Z|%s|%d", webhookID, crc32.ChecksumIEEE([]byte(body)))
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return posted(body,
		"PAYPAL-TRANSMISSION-ID", "69cd13f0", "PAYPAL-TRANSMISSION-TIME", "2026-11-22T10:00:00Z", "PAYPAL-CERT-URL", certLink,
		"PAYPAL-AUTH-ALGO", "SHA256withRSA", "PAYPAL-TRANSMISSION-SIG", base64.StdEncoding.EncodeToString(signature))
}

const payPalEvent = `{"id":"WH-1","event_type":"PAYMENT.CAPTURE.COMPLETED","resource":{"id":"c1","custom_id":"Smith & Sons"}}`

// What PayPal signed is the bytes that came, whatever encoding/json would make of
// them; the certificate is fetched once.
func TestPayPalBytes(t *testing.T) {
	t.Parallel()
	p := newPayPal(t)
	verify := PayPalVerify(webhookID, p.certs())
	for _, body := range []string{
		payPalEvent, strings.ReplaceAll(payPalEvent, ":", " :\r\n\t"), strings.Replace(payPalEvent, "&", `<\u0026>`, 1),
		strings.Replace(payPalEvent, "&", "\u2028 é \xff \\/", 1), "no JSON",
	} {
		payload, err := verify(t.Context(), p.sends(t, body))
		if err != nil || string(payload) != body {
			t.Errorf("%q: got %q, %v, want the body as it came", body, payload, err)
		}
	}
	if n := p.asked.Load(); n != 1 {
		t.Errorf("the certificate was asked for %d times, want 1", n)
	}
	written, err := json.Marshal(json.RawMessage(payPalEvent))
	if err != nil || string(written) == payPalEvent {
		t.Fatalf("encoding/json writes %s, %v, want another text", written, err)
	}
	d := p.sends(t, payPalEvent)
	d.Body = written
	refused(t, verify, d) // as PayPal's API refuses it
}

// What a stranger sends is refused, and nothing is fetched for it but what has the
// form of a certificate of PayPal's.
func TestPayPalStrangers(t *testing.T) {
	t.Parallel()
	p := newPayPal(t)
	verify := PayPalVerify(webhookID, p.certs())
	refused(t, verify, posted(""))
	refused(t, verify, posted(payPalEvent))
	for name, values := range map[string][]string{
		"Paypal-Auth-Algo":        {"", "SHA1withRSA", "none", "SHA256withRSA "},
		"Paypal-Transmission-Sig": {"!", "a b"},
		"Paypal-Cert-Url": {
			"", "CERT-1", certPath + "CERT-1", "http://" + payPalHost + certPath + "CERT-1", "https://evil.example" + certPath + "CERT-1",
			"https://api.paypal.com.evil.example" + certPath + "CERT-1", "https://api.paypal.com@evil.example" + certPath + "CERT-1",
			"https://api.paypal.com:444" + certPath + "CERT-1", "https://api.sandbox.paypal.com" + certPath + "CERT-1",
			certLink + "?", certLink + "#", certLink + "/", certLink + "/../../../evil", certLink + "%2f..", certLink + "\n", certLink + " ",
			"https://api.paypal.com" + certPath, "https://api.paypal.com" + certPath + "..", "https://api.paypal.com" + certPath + strings.Repeat("C", 101),
			"HTTPS://API.PAYPAL.COM" + certPath + "CERT-1", " " + certLink,
		},
	} {
		for _, value := range values {
			d := p.sends(t, payPalEvent)
			d.Header.Set(name, value)
			refused(t, verify, d)
		}
	}
	if n := p.asked.Load(); n != 0 {
		t.Errorf("%d requests were sent, want 0", n)
	}
	d := p.sends(t, payPalEvent)
	d.Header.Set("Paypal-Cert-Url", certLink+"0")
	refused(t, verify, d)
	refused(t, PayPalVerify("another", p.certs()), p.sends(t, payPalEvent))
	for name, value := range map[string]string{
		"Paypal-Transmission-Id": "69cd13f1", "Paypal-Transmission-Time": "2026-11-22T10:00:01Z",
		"Paypal-Transmission-Sig": base64.StdEncoding.EncodeToString(make([]byte, 256)),
	} {
		d := p.sends(t, payPalEvent)
		d.Header.Set(name, value)
		refused(t, verify, d)
	}
	d = p.sends(t, payPalEvent)
	d.Body = []byte(strings.Replace(payPalEvent, "c1", "c2", 1))
	refused(t, verify, d)
}

// While the certificate cannot be had, or cannot be believed, nobody knows: PayPal
// is told to come later, and the event is booked when it can.
func TestPayPalCannotSay(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string) func(*payPal) {
		return func(p *payPal) {
			p.answer = func(*http.Request) (*http.Response, error) { return says(status, body), nil }
		}
	}
	certified := func(change func(*x509.Certificate)) func(*payPal) {
		return func(p *payPal) { p.certify(t, change) }
	}
	for name, befall := range map[string]func(*payPal){
		"down": func(p *payPal) {
			p.answer = func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }
		},
		"500":     answer(500, ""),
		"empty":   answer(200, ""),
		"no PEM":  answer(200, "<html>"),
		"no cert": answer(200, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))),
		"redirect": func(p *payPal) {
			p.answer = func(r *http.Request) (*http.Response, error) {
				if r.URL.Host != payPalHost {
					t.Errorf("it followed a redirect to %s, want it not followed", r.URL)
				}
				response := says(302, "")
				response.Header.Set("Location", "https://evil.example/")
				return response, nil
			}
		},
		"another name": certified(func(c *x509.Certificate) { c.Subject.CommonName = "evilpaypal.com" }),
		"expired":      certified(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }),
		"another root": func(p *payPal) { p.roots = x509.NewCertPool() },
	} {
		p := newPayPal(t)
		file, roots := p.file, p.roots
		befall(p)
		certs := p.certs()
		d := p.sends(t, payPalEvent)
		if payload, err := PayPalVerify(webhookID, certs)(t.Context(), d); !errors.Is(err, callback.ErrCannotVerify) {
			t.Errorf("%s: got %s, %v, want %v", name, payload, err, callback.ErrCannotVerify)
		}
		p.answer, p.file, certs.roots = nil, file, roots
		if _, err := PayPalVerify(webhookID, certs)(t.Context(), d); err != nil {
			t.Errorf("%s, and then the certificate: got %v, want no error", name, err)
		}
	}
}

// Strangers who have certificates fetched hold up nothing that is signed by a known
// one, and few are fetched at a time.
func TestPayPalFlood(t *testing.T) {
	t.Parallel()
	p := newPayPal(t)
	certs := p.certs()
	verify, genuine := PayPalVerify(webhookID, certs), p.sends(t, payPalEvent)
	if _, err := verify(t.Context(), genuine); err != nil {
		t.Fatal(err)
	}
	var flood sync.WaitGroup
	defer flood.Wait()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	p.asked.Store(0)
	release := make(chan struct{})
	p.answer = func(*http.Request) (*http.Response, error) {
		<-release
		return nil, io.ErrUnexpectedEOF
	}
	for i := range 50 {
		flood.Go(func() {
			d := p.sends(t, payPalEvent)
			d.Header.Set("Paypal-Cert-Url", fmt.Sprintf("%s-%d", certLink, i))
			if _, err := verify(ctx, d); !errors.Is(err, callback.ErrCannotVerify) {
				t.Errorf("a stranger: got %v, want %v", err, callback.ErrCannotVerify)
			}
		})
	}
	defer close(release)
	redistest.Await(t, time.Minute, "all places to be taken", func() bool { return p.asked.Load() >= 4 })
	if _, err := verify(t.Context(), genuine); err != nil || p.asked.Load() != 4 {
		t.Errorf("got %v, and %d fetched at once, want no error and 4", err, p.asked.Load())
	}
}

// alike is a text with the CRC32 of another: from begins it, and its last member is
// letters that make up for the difference.
func alike(t *testing.T, from, other string) string {
	t.Helper()
	const letters = 64
	sum := func(choice uint64) uint32 {
		tail := make([]byte, letters)
		for i := range tail {
			tail[i] = 'A' + byte(choice>>i&1)
		}
		return crc32.ChecksumIEEE([]byte(from + string(tail) + `"}`))
	}
	// A letter changes the sum by bits of its own, whatever the others are.
	type vector struct {
		bits   uint32
		choice uint64
	}
	base := sum(0)
	var basis [32]vector
	reduce := func(v vector) vector {
		for bit := 31; bit >= 0; bit-- {
			if v.bits>>bit&1 == 1 && basis[bit].bits != 0 {
				v.bits ^= basis[bit].bits
				v.choice ^= basis[bit].choice
			}
		}
		return v
	}
	for i := range letters {
		v := reduce(vector{sum(1<<i) ^ base, 1 << i})
		for bit := 31; bit >= 0; bit-- {
			if v.bits>>bit&1 == 1 {
				basis[bit] = v
				break
			}
		}
	}
	v := reduce(vector{crc32.ChecksumIEEE([]byte(other)) ^ base, 0})
	if v.bits != 0 {
		t.Fatal("got no letters that make up for the difference, want some")
	}
	tail := make([]byte, letters)
	for i := range tail {
		tail[i] = 'A' + byte(v.choice>>i&1)
	}
	return from + string(tail) + `"}`
}

// The signature is over a CRC32, which anybody can make of another body: who has one
// delivery has them all. What the API says of the event is to be believed.
func TestPayPalSignsACRC(t *testing.T) {
	t.Parallel()
	p := newPayPal(t)
	verify := PayPalVerify(webhookID, p.certs())
	forged := p.sends(t, payPalEvent)
	forged.Body = []byte(alike(t, `{"id":"WH-2","event_type":"PAYMENT.CAPTURE.COMPLETED","resource":{"id":"c2","amount":"1000000"},"x":"`, payPalEvent))
	if payload, err := verify(t.Context(), forged); err != nil || !json.Valid(payload) {
		t.Errorf("a forgery with the same CRC32: got %s, %v, want it believed, or the page is too strict",
			payload, err)
	}
	known := strings.Replace(payPalEvent, `"c1"`, `"c1","amount":"10.00"`, 1)
	api := &payPal{answer: func(r *http.Request) (*http.Response, error) {
		switch r.URL.String() {
		case "https://api.example/v1/notifications/webhooks-events/WH-1":
			return says(200, known), nil
		case "https://api.example/v1/notifications/webhooks-events/WH-2":
			return says(404, ""), nil
		}
		return says(200, `{"events":[]}`), nil // it is the list
	}}
	look := PayPalLookup(verify, &http.Client{Transport: api}, "https://api.example")
	if _, err := look(t.Context(), forged); !errors.Is(err, callback.ErrCannotVerify) {
		t.Errorf("an event that the API does not know: got %v, want %v", err, callback.ErrCannotVerify)
	}
	if payload, err := look(t.Context(), p.sends(t, payPalEvent)); err != nil || string(payload) != known {
		t.Errorf("got %s, %v, want %s", payload, err, known)
	}
	for _, id := range []string{`""`, `"."`, `"../webhooks-events"`, `"?"`, `1`, `null`} {
		refused(t, look, p.sends(t, `{"id":`+id+`}`))
	}
	asked := api.asked.Load()
	refused(t, look, posted(payPalEvent))
	if n := api.asked.Load(); n != asked {
		t.Errorf("the API was asked about a delivery without a signature %d times, want 0", n-asked)
	}
	api.answer = func(*http.Request) (*http.Response, error) { return says(503, ""), nil }
	if _, err := look(t.Context(), p.sends(t, payPalEvent)); !errors.Is(err, callback.ErrCannotVerify) {
		t.Errorf("while the API is down: got %v, want %v", err, callback.ErrCannotVerify)
	}
	if status, booked := deliver(t, callback.PayPal(), func(ctx context.Context, _ *callback.Delivery) ([]byte, error) {
		return look(ctx, p.sends(t, payPalEvent))
	}, payPalEvent); status != 503 || booked != nil {
		t.Errorf("while the API is down: got %d, %q, want 503 and nothing booked", status, booked)
	}
}

// An answer of the API that is too long to be read is not taken for another event's.
func TestPayPalAnswersAtLength(t *testing.T) {
	t.Parallel()
	p, api := newPayPal(t), &payPal{}
	look := PayPalLookup(PayPalVerify(webhookID, p.certs()), &http.Client{Transport: api}, "https://api.example")
	for more, want := range map[int]error{0: nil, 1: callback.ErrCannotVerify} {
		known := strings.Repeat(" ", callback.DefaultMaxBody-len(payPalEvent)+more) + payPalEvent
		api.answer = func(*http.Request) (*http.Response, error) { return says(200, known), nil }
		if payload, err := look(t.Context(), p.sends(t, payPalEvent)); !errors.Is(err, want) || want == nil && string(payload) != known {
			t.Errorf("an answer of %d bytes: got %d bytes, %v, want %v", len(known), len(payload), err, want)
		}
	}
}

// The whole endpoint refuses a stranger, and asks the API nothing.
func TestPayPalCallbacks(t *testing.T) {
	t.Parallel()
	guard, err := AnyProvider(gatefake.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	api := newPayPal(t)
	for _, wrong := range []string{"", webhookID + "\n"} {
		if _, err := PayPalCallbacks(guard, wrong, nil, nil); err == nil || !strings.Contains(err.Error(), "webhook ID") {
			t.Errorf("the webhook ID %q: got %v, want an error that names it", wrong, err)
		}
	}
	endpoint, err := PayPalCallbacks(guard, webhookID, &http.Client{Transport: api}, func(context.Context, *callback.Event) error {
		t.Error("an event was handled, want none")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	nethttp.Handler(endpoint).ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(payPalEvent)))
	if w.Code != 401 || api.asked.Load() != 0 {
		t.Errorf("got %d, and %d requests sent, want 401 and 0", w.Code, api.asked.Load())
	}
}
