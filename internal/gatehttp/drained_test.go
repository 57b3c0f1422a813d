package gatehttp

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
)

// A chunked body that others have read to its end is told from an empty one, for HTTP/1
// and 2, behind a limit, and if the client waits for a 100.
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
			server.Client().Transport.(*http.Transport).ExpectContinueTimeout = time.Minute
			for _, c := range []struct{ path, body, want string }{
				{"/read", "abc", "consumed"}, {"/limited", "abc", "consumed"}, {"/read", "", "consumed"},
				{"/", "abc", "abc"}, {"/", "", ""},
			} {
				for _, expect := range []string{"", "100-continue"} {
					r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+c.path, struct{ io.Reader }{strings.NewReader(c.body)})
					if err != nil {
						t.Fatal(err)
					}
					r.Header.Set("Expect", expect)
					response, err := server.Client().Do(r)
					if err != nil {
						t.Fatal(err)
					}
					_ = response.Body.Close()
					if got := response.Header.Get("X-Body"); got != c.want {
						t.Errorf("%s with %q, Expect %q: got %q, want %q", c.path, c.body, expect, got, c.want)
					}
				}
			}
		})
	}
}
