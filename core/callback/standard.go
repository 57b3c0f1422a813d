package callback

import (
	"errors"
	"net/http"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// svix are Svix's names for the header fields of Standard Webhooks, whose scheme is its own.
// It sends one of the two spellings (https://docs.svix.com/receiving/verifying-payloads/how-manual).
var svix = map[string]string{
	standardwebhooks.HeaderWebhookID:        "svix-id",
	standardwebhooks.HeaderWebhookTimestamp: "svix-timestamp",
	standardwebhooks.HeaderWebhookSignature: "svix-signature",
}

// standardID returns the id of a delivery. It is the one that standardHeader has. A full stop
// ends it in what is signed.
func standardID(d *Delivery) (string, error) {
	const name = standardwebhooks.HeaderWebhookID
	id, err := oneOf(d, name, svix[name])
	if err == nil && strings.Contains(id, ".") {
		err = errors.New("webhook-id has a full stop in it")
	}
	return id, err
}

// standardHeader returns what the library is to verify, under the names that it knows.
func standardHeader(d *Delivery) (http.Header, error) {
	if _, err := standardID(d); err != nil {
		return nil, err
	}
	header := http.Header{}
	for name, other := range svix {
		value, err := oneOf(d, name, other)
		if err != nil {
			return nil, err
		}
		header.Set(name, value)
	}
	return header, nil
}
