package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
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
	path := mustPointer(pointer)
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
		value, err := jsonMember(body, path, pointer)
		if err != nil {
			return "", err
		}
		return tag + value, nil
	}
}

func mustPointer(pointer string) []string {
	if !strings.HasPrefix(pointer, "/") {
		panic(fmt.Sprintf("gate.ByJSON: %q is no JSON Pointer to a member; write /account or /payer/id", pointer))
	}
	path := strings.Split(pointer[1:], "/")
	for i, token := range path {
		rest := strings.NewReplacer("~0", "", "~1", "").Replace(token)
		if strings.Contains(rest, "~") {
			panic(fmt.Sprintf("gate.ByJSON: %q has a ~ that is neither ~0 nor ~1 (RFC 6901 section 3); write ~0 for the character itself", pointer))
		}
		path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}
	return path
}

func jsonMember(body []byte, path []string, pointer string) (string, error) {
	// encoding/json reads invalid UTF-8 as U+FFFD: two names would be one.
	if !utf8.Valid(body) || !json.Valid(body) {
		return "", Refuse(400, "The body of the request is not valid JSON")
	}
	value := json.RawMessage(body)
	for _, token := range path {
		next, err := child(value, token)
		if err != nil {
			return "", err
		}
		if next == nil {
			return "", missing(400, "The body of the request lacks "+pointer)
		}
		value = next
	}
	return scalar(bytes.TrimSpace(value), pointer)
}

// child finds a member of an object or an element of an array in valid JSON;
// nil when there is none.
func child(value json.RawMessage, token string) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(value))
	open, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch open {
	case json.Delim('{'):
		return member(dec, token)
	case json.Delim('['):
		return element(dec, token)
	}
	return nil, nil
}

// member refuses a name that differs in case only, even a lone one: the handler
// may well decode it.
func member(dec *json.Decoder, name string) (found json.RawMessage, err error) {
	alike := 0
	var value json.RawMessage
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		if key == name {
			found = bytes.Clone(value)
		}
		if strings.EqualFold(key.(string), name) {
			alike++
		}
	}
	if alike > 1 || alike == 1 && found == nil {
		return nil, Refuse(400, "The body of the request has "+strconv.Quote(name)+" twice, or in another case")
	}
	return found, nil
}

func element(dec *json.Decoder, token string) (json.RawMessage, error) {
	var value json.RawMessage
	for at := 0; dec.More(); at++ {
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		if strconv.Itoa(at) == token {
			return value, nil
		}
	}
	return nil, nil
}

func scalar(value json.RawMessage, pointer string) (string, error) {
	switch value[0] {
	case '"':
		var s string
		if err := json.Unmarshal(value, &s); err != nil {
			return "", err
		}
		if s == "" {
			return "", missing(400, "The body of the request lacks "+pointer)
		}
		return s, nil
	case 't', 'f':
		return string(value), nil
	case 'n':
		return "", missing(400, "The body of the request lacks "+pointer)
	case '{', '[':
		return "", Refuse(400, "In the body of the request, "+pointer+" is not a string, an integer or a boolean")
	}
	if bytes.ContainsAny(value, ".eE") || string(value) == "-0" {
		return "", Refuse(400, "In the body of the request, "+pointer+" is not an integer")
	}
	return string(value), nil
}
