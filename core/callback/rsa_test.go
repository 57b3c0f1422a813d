package callback_test

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neap-go/neap/core/callback"
)

// signer is a provider's key pair and what it hands out of it.
type signer struct {
	private     *rsa.PrivateKey
	public      string // in PEM
	certificate string
	serial      string // of the certificate, as WeChat Pay writes it
}

// signers are two providers' keys, made once: the second is a stranger's.
var signers = sync.OnceValue(func() [2]*signer {
	var all [2]*signer
	for i := range all {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		serial := new(big.Int).SetBytes([]byte{0x0A, 0xBC, byte(i)})
		all[i] = &signer{
			private: key, public: encoded("PUBLIC KEY", publicDER(&key.PublicKey)),
			certificate: certified(key, &x509.Certificate{SerialNumber: serial}), serial: "0ABC0" + string(rune('0'+i)),
		}
	}
	return all
})

func publicDER(key any) []byte {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		panic(err)
	}
	return der
}

// certified is a certificate of a key, signed by itself. It was over in 2004, and still proves.
func certified(key crypto.Signer, template *x509.Certificate) string {
	template.Subject = pkix.Name{CommonName: "provider", Organization: []string{"Authority"}, Country: []string{"CN"}}
	template.NotAfter = time.Unix(1<<30, 0)
	template.BasicConstraintsValid = true
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return encoded("CERTIFICATE", der)
}

func encoded(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// sign signs text by RSA with a hash.
func (s *signer) sign(hash crypto.Hash, text []byte) string {
	h := hash.New()
	h.Write(text)
	signature, err := rsa.SignPKCS1v15(nil, s.private, hash, h.Sum(nil))
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(signature)
}

// pss signs text by the other scheme of RSA.
func (s *signer) pss(text []byte) string {
	sum := sha256.Sum256(text)
	signature, err := rsa.SignPSS(rand.Reader, s.private, crypto.SHA256, sum[:], nil)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(signature)
}

// bare is a public key in base64, in one line.
func (s *signer) bare() string {
	return base64.StdEncoding.EncodeToString(publicDER(&s.private.PublicKey))
}

// TestProvidersKeys: a key that proves nothing is told apart when the Verify is made, and
// the error does not show it.
func TestProvidersKeys(t *testing.T) {
	t.Parallel()
	s := signers()[0]
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(s.private)
	if err != nil {
		t.Fatal(err)
	}
	authority := certified(s.private, &x509.Certificate{SerialNumber: big.NewInt(7), IsCA: true})
	const neither = "is neither a certificate nor a public key"
	for text, want := range map[string]string{
		s.public: "", s.bare(): "", s.bare() + "\n": "", s.certificate: "", s.certificate + authority: "", "Bag Attributes\n" + s.public: "",
		"": neither, "x": neither, "AAAA": neither, authority: "is the certificate of an authority", authority + s.certificate: "is the certificate of an authority",
		encoded("PRIVATE KEY", private): neither, encoded("PUBLIC KEY", private): neither, encoded("CERTIFICATE", private): neither,
		base64.StdEncoding.EncodeToString(private):                                               neither,
		encoded("PUBLIC KEY", publicDER(&small.PublicKey)):                                       "has 1024 bits",
		encoded("PUBLIC KEY", publicDER(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))): "is no RSA key",
		encoded("RSA PUBLIC KEY", publicDER(&s.private.PublicKey)):                               neither,
		strings.Replace(s.public, "-----BEGIN", "---BEGIN", 1):                                   neither,
		encoded("CERTIFICATE", bytes.Repeat([]byte{0x30}, 1<<10)):                                neither,
	} {
		_, err := callback.VerifyAlipay("2021", s.public, text)
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), "VerifyAlipay: key 1 "+want)):
			t.Errorf("%.60q: got %v, want %q", text, err, want)
		case err != nil && len(text) > 10 && strings.Contains(err.Error(), text[:10]):
			t.Errorf("%.60q: got %v, want the key not shown", text, err)
		}
	}
}
