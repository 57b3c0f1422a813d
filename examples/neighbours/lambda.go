package neighbours

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"

	"github.com/neap-go/neap/core/store"
)

// OnLambda answers the events of an API Gateway HTTP API and of a function URL. Give
// it the store of your limiters, locks and guards, and give its result to
// lambda.Start. Between two events Lambda freezes the process. So before it answers,
// OnLambda waits until neap's work in the background is done, but no longer than
// patience.
func OnLambda(h http.Handler, st *store.Store, patience time.Duration) func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	adapter := httpadapter.NewV2(WrittenFields(h))
	return func(ctx context.Context, event events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		response, err := adapter.ProxyWithContext(ctx, event)
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if err := st.Drain(ctx); err != nil {
			slog.WarnContext(ctx, "left to its lease", "err", err)
		}
		return response, err
	}
}

// WrittenFields leaves out fields without a line, which no server sends. neap marks a
// refusal by one, of which the adapter would make an empty field, or a null.
func WrittenFields(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		maps.DeleteFunc(w.Header(), func(_ string, lines []string) bool { return len(lines) == 0 })
	})
}

// SortedQuery is for the events of a REST API and of a load balancer. The adapter
// writes the query of these in another order each time, and gate.Idempotent would
// take a repetition for another request and refuse it.
func SortedQuery(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.RawQuery = r.URL.Query().Encode()
		r.RequestURI = r.URL.RequestURI()
		h.ServeHTTP(w, r)
	})
}
