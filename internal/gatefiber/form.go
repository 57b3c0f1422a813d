package gatefiber

import (
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
)

// multipartBody returns the body of a request whose Content-Type is that of a multipart
// form. If fasthttp has parsed the form before any handler ran, its bytes are gone, and
// the form is written anew.
func multipartBody(native *fasthttp.Request, max int64) ([]byte, error) {
	length := native.Header.ContentLength()
	if int64(length) > max {
		return nil, gate.ErrBodyTooLarge
	}
	var sent fasthttp.Request
	native.CopyTo(&sent) // the copy has no parsed form, from which Body would make up bytes
	if body := sent.Body(); len(body) > 0 {
		if int64(len(body)) > max {
			return nil, gate.ErrBodyTooLarge
		}
		return slices.Clip(body), nil
	}
	form, err := native.MultipartForm() // parses nothing: there is no body
	switch {
	case err == nil:
		h := &native.Header
		return adapter.Form(form, string(h.MultipartFormBoundary()), string(h.ContentType()), max)
	case length > 0:
		return nil, gate.ErrBodyConsumed
	}
	return nil, nil
}
