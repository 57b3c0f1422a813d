package callback

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
)

// minBits is the size of the keys that Alipay's RSA2 and WeChat Pay's API v3 sign with.
const minBits = 2048

// providerKey is an RSA key that a provider signs with.
type providerKey struct {
	key  *rsa.PublicKey
	cert *x509.Certificate // that the key was read from, or nil
}

// readKey reads a public key or a certificate in PEM. Of several certificates it takes the
// first, because a provider's file has its own before those of the authorities. It also
// reads a public key in bare base64, as Alipay's console shows it. Its errors do not show
// the text, which may be a private key.
func readKey(text string) (providerKey, error) {
	none := errors.New("is neither a certificate nor a public key in PEM: copy the provider's, and no private key")
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		der, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return providerKey{}, none
		}
		block = &pem.Block{Type: "PUBLIC KEY", Bytes: der}
	}
	var k providerKey
	var found any
	var err error
	switch block.Type {
	case "CERTIFICATE":
		if k.cert, err = x509.ParseCertificate(block.Bytes); err == nil {
			found = k.cert.PublicKey
		}
	case "PUBLIC KEY":
		found, err = x509.ParsePKIXPublicKey(block.Bytes)
	default:
		err = none
	}
	if err != nil {
		return providerKey{}, none
	}
	var is bool
	switch k.key, is = found.(*rsa.PublicKey); {
	case !is:
		return providerKey{}, errors.New("is no RSA key: copy the one that the provider signs with")
	case k.key.N.BitLen() < minBits:
		return providerKey{}, fmt.Errorf("has %d bits: the provider signs with %d or more", k.key.N.BitLen(), minBits)
	case k.cert != nil && k.cert.IsCA:
		return providerKey{}, errors.New("is the certificate of an authority: copy the one that the authority gave the provider")
	}
	return k, nil
}

// proves returns nil if the signature is that of the text by RSA (PKCS #1 v1.5) with
// SHA-256.
func (k providerKey) proves(text, signature []byte) error {
	sum := sha256.Sum256(text)
	if rsa.VerifyPKCS1v15(k.key, crypto.SHA256, sum[:], signature) != nil {
		return errSignature
	}
	return nil
}

// exactBase64 decodes base64. A text that encodes nothing in this way, such as one with a
// line break, is refused, so that a signature has one text.
func exactBase64(field, text string) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || base64.StdEncoding.EncodeToString(raw) != text {
		return nil, fmt.Errorf("%s is no base64", field)
	}
	return raw, nil
}
