package rpc

import (
	"encoding/json"
	"net/http"

	"connectrpc.com/connect"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/nethttp"
)

// LimitConnect puts a limit before a handler of connect-go. Its denials are errors of the
// Connect protocol for unary methods.
func LimitConnect(limiter *limit.Limiter, key gate.Key, next http.Handler) http.Handler {
	return nethttp.Middleware(gate.RateLimit(limiter, key, &gate.RateLimitOptions{Render: connectError}))(next)
}

func connectError(d gate.Denial) gate.Reply {
	code := connect.CodeInvalidArgument
	switch d.Kind {
	case gate.KindLimited:
		code = connect.CodeResourceExhausted
	case gate.KindUnavailable:
		code = connect.CodeUnavailable
	case gate.KindFault:
		code = connect.CodeInternal
	}
	body, err := json.Marshal(map[string]string{"code": code.String(), "message": d.Title})
	if err != nil {
		panic(err) // two strings cannot fail
	}
	return gate.Reply{Header: []gate.Field{{Name: "Content-Type", Value: "application/json"}}, Body: body}
}
