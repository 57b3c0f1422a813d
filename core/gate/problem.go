package gate

import (
	"bytes"
	"encoding/json"
)

// problem renders a denial as RFC 9457 problem details.
func problem(d *Denial) Reply {
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
