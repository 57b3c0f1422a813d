package nethttp_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatefake"
	"github.com/neap-go/neap/nethttp"
)

// held keeps an answer back, in order to send or to drop it.
type held struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (h *held) WriteHeader(status int)      { h.status = status }
func (h *held) Write(p []byte) (int, error) { return h.body.Write(p) }

// retrying tries once more after a 503.
func retrying(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &held{ResponseWriter: w}
		if next.ServeHTTP(answer, r); answer.status == 503 {
			answer = &held{ResponseWriter: w}
			next.ServeHTTP(answer, r)
		}
		w.WriteHeader(answer.status)
		_, _ = w.Write(answer.body.Bytes())
	})
}

// If middleware drops a refusal and tries again, the refusal is not the answer of the
// handler that runs then.
func TestRefusalThatIsNotSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refusals int
		refused  bool
	}{"Once": {1, false}, "Twice": {2, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			flaky := gateFunc(func(gate.Request) gate.Pass {
				if asked++; asked <= c.refusals {
					return gate.Pass{Reply: &gate.Reply{Status: 503, Refused: true}}
				}
				return gate.Pass{}
			})
			l := &gatefake.Leaving{T: t}
			h := nethttp.Middleware(l)(retrying(nethttp.Middleware(flaky)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "charged, and the bank does not say how it went", http.StatusServiceUnavailable)
			}))))
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", nil))
			if l.Reply == nil || l.Reply.Status != 503 || l.Reply.Refused != c.refused {
				t.Errorf("the gate outside was left with %+v, want a refusal: %t", l.Reply, c.refused)
			}
		})
	}
}
