package kratoslimit

import (
	"errors"
	"net/http"
	"reflect"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	"github.com/go-kratos/kratos/v2/transport"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatehttp"
)

// denial is the error of a request over HTTP that a gate refused.
type denial struct{ as *kerrors.Error }

func (d *denial) Error() string { return d.as.Error() }

// Unwrap returns the error that Kratos sends.
func (d *denial) Unwrap() error { return d.as }

// reasonLimited is the reason that Kratos' own middleware gives for a 429.
const reasonLimited = "RATELIMIT"

// deny returns the error of a request that the gate refused, and writes its header.
func deny(h transport.Header, pass *gate.Pass) error {
	reply, reason := pass.Reply.Sent(), ""
	if reply.Status == http.StatusTooManyRequests {
		reason = reasonLimited
	}
	setHeader(h, pass.Header)
	setHeader(h, reply.Header)
	if own := headerOf(h); own != nil {
		gatehttp.MarkRefused(own, reply.Status)
	}
	return &denial{kerrors.New(reply.Status, reason, pass.Denial.Title)}
}

// setHeader writes fields, without those of the body: Kratos writes another one.
func setHeader(h transport.Header, fields []gate.Field) {
	for _, f := range fields {
		switch name := http.CanonicalHeaderKey(f.Name); {
		case name == "Content-Type", name == "Content-Length":
		case f.Add:
			h.Add(f.Name, f.Value)
		default:
			h.Set(f.Name, f.Value)
		}
	}
}

// headerOf returns the header of net/http that Kratos has given another type, or nil if it is
// not there. Only the map can have a field without a line.
func headerOf(h transport.Header) http.Header {
	v, header := reflect.ValueOf(h), reflect.TypeFor[http.Header]()
	if !v.IsValid() || !v.CanConvert(header) {
		return nil
	}
	return v.Convert(header).Interface().(http.Header)
}

// replyOf returns the answer of a handler as a gate sees it: with the status that Kratos sends
// for the error, and without its body.
func replyOf(err error) *gate.Reply {
	_, refused := errors.AsType[*denial](err)
	return &gate.Reply{Status: kerrors.Code(err), Partial: true, Refused: refused}
}
