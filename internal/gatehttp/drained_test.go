package gatehttp

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/gate"
)

// A chunked body that others have read to its end is told from an empty one, for HTTP/1
// and 2, and behind a limit.
func TestDrained(t *testing.T) {
	t.Parallel()
	for name, http2 := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/limited":
					r.Body = http.MaxBytesReader(w, r.Body, 100)
					fallthrough
				case "/read":
					_, _ = io.Copy(io.Discard, r.Body)
				}
				body, err := Request{HTTP: r}.Body(100)
				w.Header().Set("X-Body", string(body))
				if errors.Is(err, gate.ErrBodyConsumed) {
					w.Header().Set("X-Body", "consumed")
				} else if err != nil {
					t.Error(err)
				}
			}))
			server.EnableHTTP2 = http2
			server.StartTLS()
			t.Cleanup(server.Close)
			for _, c := range []struct{ path, body, want string }{
				{"/read", "abc", "consumed"}, {"/limited", "abc", "consumed"}, {"/read", "", "consumed"},
				{"/", "abc", "abc"}, {"/", "", ""},
			} {
				response, err := server.Client().Post(server.URL+c.path, "text/plain", struct{ io.Reader }{strings.NewReader(c.body)})
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
				if got := response.Header.Get("X-Body"); got != c.want {
					t.Errorf("%s with %q: got %q, want %q", c.path, c.body, got, c.want)
				}
			}
		})
	}
}
