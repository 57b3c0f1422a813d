package gate

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"strings"
)

// DefaultMaxBody is how many bytes of a body [ByForm] and [ByJSON] read unless
// told otherwise.
const DefaultMaxBody = 1 << 20

// BodyOptions are the options of [ByForm] and [ByJSON].
type BodyOptions struct {
	// MaxBody is the longest body that is read, in bytes; a longer one is
	// refused with a 413. Zero is [DefaultMaxBody].
	MaxBody int64
}

func (o *BodyOptions) max(constructor string) int64 {
	switch {
	case o == nil || o.MaxBody == 0:
		return DefaultMaxBody
	case o.MaxBody < 0:
		panic("gate." + constructor + ": BodyOptions.MaxBody is negative; 0 is DefaultMaxBody")
	}
	return o.MaxBody
}

// ByForm is a field of a form in the body, urlencoded or multipart. It must be
// there exactly once and not be empty, the body must be a well-encoded form,
// and the query must have no parameter of that name, which some frameworks'
// FormValue prefers: otherwise the request is refused with a 400, and with a
// 415 when its Content-Type is no form's. The handler can read the body again.
//
// A body that middleware has read before is answered with a 500, and the hook
// receives [ErrBodyConsumed].
//
// It panics on an empty name or impossible options; nil options are the
// defaults.
func ByForm(name string, opts *BodyOptions) Key {
	mustName("ByForm", "name", name)
	limit := opts.max("ByForm")
	tag := tagFor("form", name)
	return func(r Request) (string, error) {
		body, err := readBody(r, limit)
		if err != nil {
			return "", err
		}
		values, err := formValues(r, body, name)
		if err != nil {
			return "", err
		}
		rivals, err := queryValues(r, name)
		if err != nil {
			return "", err
		}
		if len(rivals) > 0 {
			return "", Refuse(400, "The form field "+name+" is in the query of the request")
		}
		return one(values, tag, "form field "+name)
	}
}

func readBody(r Request, limit int64) ([]byte, error) {
	body, err := r.Body(limit)
	if err != nil {
		return nil, fmt.Errorf("gate: the body could not be read: %w", err)
	}
	return body, nil
}

func formValues(r Request, body []byte, name string) ([]string, error) {
	if len(body) == 0 {
		return nil, nil
	}
	kind, params, err := mediaType(r)
	if err != nil {
		return nil, err
	}
	var values []string
	switch kind {
	case "application/x-www-form-urlencoded":
		var form url.Values
		form, err = url.ParseQuery(string(body))
		values = form[name]
	case "multipart/form-data":
		values, err = multipartValues(body, params["boundary"], name)
	default:
		return nil, Refuse(415, "The body of the request is not a form")
	}
	if err != nil {
		return nil, Refuse(400, "The body of the request is not a well-encoded form")
	}
	return values, nil
}

func multipartValues(body []byte, boundary, name string) ([]string, error) {
	var values []string
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := parts.NextPart()
		if err == io.EOF { // a wrapped one is a body that was cut short
			return values, nil
		}
		if err != nil {
			return nil, err
		}
		value, err := io.ReadAll(io.LimitReader(part, maxSubject+1))
		if err != nil {
			return nil, err
		}
		if part.FormName() == name && part.FileName() == "" {
			values = append(values, string(value))
		}
	}
}

// mediaType insists on one Content-Type: a handler that takes forms and JSON
// decides by it which of two readings of the body holds.
func mediaType(r Request) (string, map[string]string, error) {
	lines := r.Header("Content-Type")
	if len(lines) > 1 {
		return "", nil, Refuse(400, "The request has more than one Content-Type")
	}
	kind, params, err := mime.ParseMediaType(strings.Join(lines, ""))
	if err != nil {
		return "", nil, Refuse(415, "The request lacks a Content-Type that is understood")
	}
	return kind, params, nil
}
