package gate

import (
	"errors"
	"strings"

	"github.com/neap-go/neap/core/internal/jsonptr"
)

// ByJSON is a member of a JSON body, named by a JSON Pointer (RFC 6901):
// "/account" or "/payer/id" or "/items/0/sku". A pointer rather than a dotted
// path, because member names may hold dots and pointers name them without
// guessing. The handler can read the body again.
//
// The member is a string, an integer or a boolean. An integer counts as
// written, and as much as a string of the same digits, so that quoting it makes
// no second key; a number with a fraction or an exponent is refused, since it
// has many spellings. Refused with a 400 are a missing, null or compound member,
// a body that is not JSON, and a member on the way there that comes twice or in
// another case: encoding/json decodes "id" and "ID" into the same field, and
// takes the last. A Content-Type that is not JSON's is refused with a 415.
//
// A body that middleware has read before is answered with a 500, and the hook
// receives [ErrBodyConsumed].
//
// It panics on what is no pointer to a member and on impossible options; nil
// options are the defaults.
func ByJSON(pointer string, opts *BodyOptions) Key {
	path, err := jsonptr.Parse(pointer)
	if err != nil {
		panic("gate.ByJSON: " + err.Error())
	}
	limit := opts.max("ByJSON")
	tag := tagFor("json", pointer)
	return func(r Request) (string, error) {
		body, err := readBody(r, limit)
		if err != nil {
			return "", err
		}
		if len(body) == 0 {
			return "", missing(400, "The request has no body")
		}
		kind, _, err := mediaType(r)
		if err != nil {
			return "", err
		}
		if kind != "application/json" && !strings.HasSuffix(kind, "+json") {
			return "", Refuse(415, "The body of the request is not JSON")
		}
		if !jsonptr.Valid(body) {
			return "", refuseJSON(jsonptr.ErrInvalid, path)
		}
		value, err := path.Text(body)
		if err != nil {
			return "", refuseJSON(err, path)
		}
		return tag + value, nil
	}
}

func refuseJSON(err error, path jsonptr.Pointer) error {
	switch {
	case errors.Is(err, jsonptr.ErrMissing):
		return missing(400, "The body of the request lacks "+path.String())
	case errors.Is(err, jsonptr.ErrAmbiguous):
		return Refuse(400, "On the way to "+path.String()+", the body of the request has a member twice, or in another case")
	case errors.Is(err, jsonptr.ErrCompound):
		return Refuse(400, "In the body of the request, "+path.String()+" is not a string, an integer or a boolean")
	case errors.Is(err, jsonptr.ErrFraction):
		return Refuse(400, "In the body of the request, "+path.String()+" is not an integer")
	}
	return Refuse(400, "The body of the request is not valid JSON")
}
