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

// defaultMaxBody is the most that is read of a body if nothing else is said.
const defaultMaxBody = 1 << 20

// BodyOptions are the options of [ByForm] and [ByJSON].
type BodyOptions struct {
	// MaxBody is the longest body that is read, in bytes. A longer one is refused with a
	// 413. Zero means 1 MiB.
	MaxBody int64
}

func (o *BodyOptions) max(constructor string) int64 {
	switch {
	case o == nil || o.MaxBody == 0:
		return defaultMaxBody
	case o.MaxBody < 0:
		panic("gate." + constructor + ": BodyOptions.MaxBody is negative; 0 is 1 MiB")
	}
	return o.MaxBody
}

// ByForm is a field of a form in the body, urlencoded or multipart. The handler can read
// the body again.
//
// The field must be there exactly once and not be empty. The body must be a well-encoded
// form. The query must have no parameter of that name, because the FormValue of some
// frameworks prefers it. No other name in either may differ from it only in case or
// brackets, such as Name[], because some parsers take these for the same. Otherwise the
// request is refused with a 400. If its Content-Type is not that of a form, it is refused
// with a 415.
//
// If middleware has read the body before, the answer is a 500, and the hook gets
// [ErrBodyConsumed].
//
// ByForm panics on an empty name and on impossible options. Nil options are the defaults.
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
	var form url.Values
	switch kind {
	case "application/x-www-form-urlencoded":
		form, err = url.ParseQuery(string(body))
	case "multipart/form-data":
		form, err = multipartValues(body, params["boundary"])
	default:
		return nil, Refuse(415, "The body of the request is not a form")
	}
	odd, is := Unwrap(r).(interface{ OddForm() bool })
	if err != nil || is && odd.OddForm() {
		return nil, Refuse(400, "The body of the request is not a well-encoded form")
	}
	return valuesOf(form, name)
}

// valuesOf returns the values of a name. It refuses another name that some parsers take for
// it, even if the name itself is not there: a handler may then get that field.
func valuesOf(form url.Values, name string) ([]string, error) {
	for other := range form {
		if other != name && sameField(other, name) {
			return nil, Refuse(400, "The request has another name for "+name)
		}
	}
	return form[name], nil
}

// sameField reports whether some parser takes one name for the other. Some match without
// case. Some cut a name at its bracket; those of Fiber drop [] and read [ as a dot.
func sameField(other, name string) bool {
	plain, _, _ := strings.Cut(other, "[")
	return strings.EqualFold(plain, name) || strings.EqualFold(dotted(other), dotted(name))
}

// dotted writes a name as the parsers of Fiber read its brackets.
func dotted(name string) string { return brackets.Replace(name) }

var brackets = strings.NewReplacer("[]", "", "[", ".", "]", "")

func multipartValues(body []byte, boundary string) (url.Values, error) {
	values := url.Values{}
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := parts.NextPart()
		if err == io.EOF { // a wrapped io.EOF means that the body was cut short
			return values, nil
		}
		if err != nil {
			return nil, err
		}
		value, err := io.ReadAll(io.LimitReader(part, maxSubject+1))
		if err != nil {
			return nil, err
		}
		if part.FileName() == "" {
			values.Add(part.FormName(), string(value))
		}
	}
}

// mediaType insists on one Content-Type. A handler that takes both forms and JSON decides
// by it how to read the body.
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
