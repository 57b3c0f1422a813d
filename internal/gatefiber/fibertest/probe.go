package fibertest

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatetest"
	"github.com/neap-go/neap/internal/gatefake"
)

// gated is an application with one gate behind middleware.
func gated(g gate.Gate, around ...gatetest.Middleware) gatetest.App {
	return gatetest.App{Around: around, Gates: []gate.Gate{g}}
}

func respond(status int, body string) gate.Pass {
	return gate.Pass{Reply: &gate.Reply{Status: status, Body: []byte(body)}}
}

// told is a gate that answers with what report returns for the request.
func told(report func(gate.Request) string) gate.Gate {
	return gatefake.Func(func(q gate.Request) gate.Pass { return respond(200, report(q)) })
}

// bodies is a gate that answers with what Body returns. It asks twice.
func bodies(max int64) gate.Gate {
	return gatefake.Func(func(q gate.Request) gate.Pass {
		body, err := q.Body(max)
		again, errAgain := q.Body(max)
		if string(again) != string(body) || !errors.Is(errAgain, err) {
			return respond(500, fmt.Sprintf("asked again: %q %v", again, errAgain))
		}
		return respond(200, fmt.Sprintf("%d %v", len(body), err))
	})
}

// names reports what a gate is told about fields and about their keys.
func names(fields ...string) func(gate.Request) string {
	return func(q gate.Request) string {
		_, _ = q.Body(1 << 10)
		var out []string
		for _, name := range fields {
			key, err := gate.ByHeader(name)(q)
			if err != nil {
				key = "refused"
			}
			out = append(out, fmt.Sprintf("%q %s", q.Header(name), key))
		}
		return strings.Join(out, " ")
	}
}

// before is middleware that changes the request as fasthttp has it.
func (d Driver) before(change func(*fasthttp.RequestCtx)) gatetest.Middleware {
	return func(x gatetest.Exchange, next func() error) error {
		change(d.RequestCtx(x))
		return next()
	}
}

// lent is the string that Fiber makes from bytes: it changes with them.
func lent(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
