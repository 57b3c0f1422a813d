package gatehttp_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatehttp"
)

// If middleware outside sets a Content-Encoding in order to apply it later, the handler's
// body does not have it. If the handler sets one itself, its body has it.
func TestContentEncodingIsTheHandlers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outside, handler, want string
	}{
		"none":                   {"", "", ""},
		"outside":                {"gzip", "", ""},
		"the handler's":          {"", "br", "br"},
		"both":                   {"gzip", "br", "br"},
		"dropped by the handler": {"gzip", "-", ""},
	} {
		header := http.Header{}
		if c.outside != "" {
			header.Set("Content-Encoding", c.outside)
		}
		rec := gatehttp.NewRecorder(header, "POST", 100)
		switch c.handler {
		case "":
		case "-":
			header.Del("Content-Encoding")
		default:
			header.Set("Content-Encoding", c.handler)
		}
		rec.Commit(200)
		_, _ = rec.Wrote([]byte("<html>"), 6, nil)
		reply := rec.Reply()
		got := ""
		for _, f := range reply.Header {
			if f.Name == "Content-Encoding" {
				got = f.Value
			}
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		guessed := slices.Contains(reply.Header, gate.Field{Name: "Content-Type", Value: "text/html; charset=utf-8"})
		if guessed != (c.want == "") {
			t.Errorf("%s: got a Content-Type guessed %t, want %t", name, guessed, c.want == "")
		}
	}
}
