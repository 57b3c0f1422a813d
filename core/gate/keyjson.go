package gate

import (
	"errors"
	"strings"

	"github.com/neap-go/neap/core/internal/jsonptr"
)

// ByJSON is a member of a JSON body, named by a JSON Pointer (RFC 6901): "/account",
// "/payer/id" or "/items/0/sku". It is a pointer and not a dotted path because member
// names may contain dots. The handler can read the body again.
//
// The member is a string, an integer or a boolean. An integer counts as written, and the
// same as a string of the same digits, so that quoting it makes no second key. A number
// with a fraction or an exponent is refused, because it has many spellings.
//
// The request is refused with a 400 if
//
//   - the member is missing, null or compound,
//   - the body is not JSON,
//   - a member on the way to it, or the member itself, comes twice or in another case:
//     encoding/json decodes "id" and "ID" into the same field, and takes the last.
//
// A Content-Type that is not JSON's is refused with a 415. If middleware has read the
// body before, the answer is a 500, and the hook gets [ErrBodyConsumed].
//
// ByJSON panics on text that is no pointer to a member and on impossible options. Nil
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
		if !isJSON(kind) {
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

// isJSON reports whether a media type is that of JSON (RFC 8259 section 11, RFC 6839 section 3.1).
func isJSON(kind string) bool {
	return kind == "application/json" || strings.HasSuffix(kind, "+json")
}

func refuseJSON(err error, path jsonptr.Pointer) error {
	switch {
	case errors.Is(err, jsonptr.ErrMissing):
		return missing(400, "The body of the request lacks "+path.String())
	case errors.Is(err, jsonptr.ErrAmbiguous):
		return Refuse(400, "The body of the request has a member twice, or in another case, on the way to "+path.String())
	case errors.Is(err, jsonptr.ErrCompound):
		return Refuse(400, "In the body of the request, "+path.String()+" is not a string, an integer or a boolean")
	case errors.Is(err, jsonptr.ErrFraction):
		return Refuse(400, "In the body of the request, "+path.String()+" is not an integer")
	}
	return Refuse(400, "The body of the request is not valid JSON")
}
