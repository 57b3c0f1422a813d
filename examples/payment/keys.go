package main

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"os"
	"sync"
)

// pair is the key pair of Alipay and WeChat Pay. The simulator alone has it.
var pair = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// publish writes the public key into a file, from which the shop reads it.
func publish(file string) error {
	der, err := x509.MarshalPKIXPublicKey(&pair().PublicKey)
	if err != nil {
		return err
	}
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600)
}

// signed is the signature of a text by RSA with SHA-256.
func signed(text string) string {
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(nil, pair(), crypto.SHA256, sum[:])
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(signature)
}
