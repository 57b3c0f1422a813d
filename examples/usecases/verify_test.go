package usecases

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/callback"
)

// posted is a delivery with these header fields.
func posted(body string, header ...string) *callback.Delivery {
	d := &callback.Delivery{Method: "POST", Path: "/callbacks", Header: http.Header{}, Body: []byte(body)}
	for i := 0; i < len(header); i += 2 {
		d.Header.Set(header[i], header[i+1])
	}
	return d
}

// refused fails the test unless verify says that a delivery is not the provider's.
func refused(t *testing.T, verify callback.Verify, d *callback.Delivery) {
	t.Helper()
	payload, err := verify(t.Context(), d)
	if err == nil || errors.Is(err, callback.ErrCannotVerify) {
		t.Errorf("%.200s %v: got %.200s, %v; want a refusal", d.Body, d.Header, payload, err)
	}
}

// ValidateHmac of some versions panics on an item without a signature, and a
// stranger can send that.
func TestAdyenItemsHaveASignature(t *testing.T) {
	t.Parallel()
	sdk := func(item json.RawMessage) bool {
		var i struct {
			AdditionalData *map[string]any `json:"additionalData"`
		}
		return json.Unmarshal(item, &i) == nil && (*i.AdditionalData)["hmacSignature"].(string) == "AA=="
	}
	const signed = `{"NotificationRequestItem":{"additionalData":{"hmacSignature":"AA=="}}}`
	for _, body := range []string{
		``, `null`, `[]`, `{}`, `{"notificationItems":null}`, `{"notificationItems":[]}`, `{"notificationItems":{}}`,
		`{"notificationItems":[null]}`, `{"notificationItems":[{}]}`, `{"notificationItems":[[]]}`,
	} {
		refused(t, AdyenVerify(sdk), posted(body))
	}
	for _, item := range []string{
		`null`, `1`, `""`, `[]`, `{}`, `{"additionalData":null}`, `{"additionalData":[]}`, `{"additionalData":{}}`,
		`{"additionalData":{"hmacSignature":null}}`, `{"additionalData":{"hmacSignature":1}}`, `{"additionalData":{"hmacSignature":""}}`,
		`{"additionalData":{"HmacSignature":"AA=="}}`, `{"additionalData":{"hmacSignature":"AA=="},"AdditionalData":null}`,
		`{"additionalData":{"hmacSignature":"AA=="},"additionalData":{"hmacSignature":null}}`, `{"additionalData":{"hmacSignature":"BB=="}}`,
	} {
		forged := `{"NotificationRequestItem":` + item + `}`
		for _, items := range []string{forged, signed + `,` + forged, forged + `,` + signed} {
			refused(t, AdyenVerify(sdk), posted(`{"notificationItems":[`+items+`]}`))
		}
	}
	if _, err := AdyenVerify(sdk)(t.Context(), posted(`{"notificationItems":[`+signed+`]}`)); err != nil {
		t.Error(err)
	}
}

// Square's SDK takes an empty body for signed.
func TestSquareSignsSomething(t *testing.T) {
	t.Parallel()
	const field = "x-square-hmacsha256-signature"
	sdk := func(_ context.Context, body, signature string) error {
		if body != "" && signature != "signed "+body {
			return errors.New("not signed")
		}
		return nil
	}
	verify := SquareVerify(sdk)
	for _, d := range []*callback.Delivery{posted(""), posted("", field, "signed "), posted("{}"), posted("{}", field, "AA==")} {
		refused(t, verify, d)
	}
	if payload, err := verify(t.Context(), posted("{}", field, "signed {}")); err != nil || string(payload) != "{}" {
		t.Errorf("got %s, %v, want {} and no error", payload, err)
	}
	if status, booked := deliver(t, callback.Square(), verify, ""); status != 401 || booked != nil {
		t.Errorf("an empty body: got %d, %q, want 401 and nothing booked", status, booked)
	}
}

// A colon moves the fields that one signature of Adyen's is over.
func TestAdyenRefusesAShiftedItem(t *testing.T) {
	t.Parallel()
	const genuine = `{"pspReference":"1","originalReference":"","merchantAccountCode":"Shop","merchantReference":"a:17",` +
		`"eventCode":"CAPTURE","success":"true","additionalData":{"hmacSignature":"AA=="}}`
	shifted := strings.NewReplacer(`"1"`, `"1:"`, `"originalReference":""`, `"originalReference":"Shop"`, `"Shop"`, `"a"`, `a:17`, `17`).Replace(genuine)
	believed := func(json.RawMessage) bool { return true }
	for item, want := range map[string]int{genuine: 200, shifted: 400} {
		body := `{"notificationItems":[{"NotificationRequestItem":` + item + `}]}`
		if status, booked := deliver(t, callback.Adyen(), AdyenVerify(believed), body); status != want {
			t.Errorf("%s: %d, %q; want %d", item, status, booked, want)
		}
	}
}
