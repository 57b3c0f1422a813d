package neighbours

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/nethttp"
)

// Retrying returns a client that sends requests again, each time within the limit.
func Retrying(limiter *limit.Limiter, wait time.Duration) *http.Client {
	client := retryablehttp.NewClient()
	client.Logger = nil
	client.HTTPClient.Transport = nethttp.NewTransport(nil, limiter, nil, &nethttp.TransportOptions{Wait: wait})
	client.CheckRetry = func(ctx context.Context, a *http.Response, err error) (bool, error) {
		if errors.Is(err, limit.ErrLimited) { // it has waited already
			return false, err
		}
		return retryablehttp.DefaultRetryPolicy(ctx, a, err)
	}
	return client.StandardClient()
}
