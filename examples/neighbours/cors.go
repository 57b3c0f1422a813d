package neighbours

import (
	"net/http"

	"github.com/rs/cors"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/nethttp"
)

// CORS lets pages of these origins use an API that is limited and guarded. It stands
// outside of the gates: so preflights are not counted, and a page can read a refusal.
func CORS(origins []string, api http.Handler, gates ...gate.Gate) http.Handler {
	browsers := cors.New(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: []string{http.MethodGet, http.MethodPost},
		AllowedHeaders: []string{"Content-Type", "Idempotency-Key"},
		ExposedHeaders: []string{"RateLimit", "RateLimit-Policy", "Retry-After", "Idempotent-Replayed"},
		MaxAge:         600, // seconds for which a browser sends no other preflight
	})
	return browsers.Handler(nethttp.Middleware(gate.Chain(gates...))(api))
}
