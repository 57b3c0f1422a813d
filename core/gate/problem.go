package gate

import (
	"bytes"
	"encoding/json"
)

// typeQuota is the problem type of draft-ietf-httpapi-ratelimit-headers-11, section 5.1,
// and titleQuota is its title there.
const (
	typeQuota  = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	titleQuota = "Request cannot be satisfied as assigned quota has been exceeded"
)

// TypeIdempotency begins the problem types of [Idempotent]. It leads to the page that
// explains each of them.
const TypeIdempotency = "https://github.com/neap-go/neap/blob/main/docs/idempotency.md#"

const (
	typeKeyMissing  = TypeIdempotency + "key-missing"
	typeKeyInvalid  = TypeIdempotency + "key-invalid"
	typeKeyReused   = TypeIdempotency + "key-reused"
	typeInFlight    = TypeIdempotency + "in-flight"
	typeInDoubt     = TypeIdempotency + "in-doubt"
	typeDone        = TypeIdempotency + "already-done"
	typeUnavailable = TypeIdempotency + "not-begun"
)

// TypeStock begins the problem types of [Reserve]. It leads to the page that explains
// each of them.
const TypeStock = "https://github.com/neap-go/neap/blob/main/docs/stock.md#"

const (
	typeSoldOut     = TypeStock + "sold-out"
	typeYours       = TypeStock + "already-yours"
	typeUnknownItem = TypeStock + "unknown-item"
	typeQuantity    = TypeStock + "another-quantity"
	typeCalls       = TypeStock + "too-many-calls"
	typeNotReserved = TypeStock + "not-reserved"
)

// problem renders a denial as RFC 9457 problem details.
func problem(d Denial) Reply {
	details := struct {
		Type     string   `json:"type,omitempty"`
		Title    string   `json:"title,omitempty"`
		Status   int      `json:"status"`
		Detail   string   `json:"detail,omitempty"`
		Violated []string `json:"violated-policies,omitempty"`
	}{Type: d.Type, Title: d.Title, Status: d.Status, Detail: d.Detail}
	if d.Decision != nil {
		for s := range d.Decision.States() {
			if !s.Allowed && !s.Shadow {
				details.Violated = append(details.Violated, s.Policy)
			}
		}
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(details); err != nil {
		panic("gate: " + err.Error()) // strings and an int cannot fail
	}
	header := appendFields([]Field{{Name: fieldContentType, Value: "application/problem+json"}}, d.Header)
	return Reply{Status: d.Status, Header: header, Body: body.Bytes()}
}
