package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"net/textproto"
	"net/url"
)

// Values are what keys can read of a request. A zero field is something that the request
// does not have.
type Values struct {
	// Addr is the client's address. It replaces the peer, also where the gate finds the
	// client behind trusted proxies or with IPOptions.FromContext.
	Addr netip.Addr
	// Method, Host and Path are as the client sends them; Path is escaped.
	Method, Host, Path string
	// Route is the pattern that matches, such as "/users/{id}". Params are its
	// parameters, unescaped. A key that reads Params needs Route, too.
	Route  string
	Params map[string]string
	// Header, Query and Form have one value for each name, unescaped. Form makes a body
	// of type application/x-www-form-urlencoded.
	Header, Query, Form map[string]string
	// JSON makes a body of type application/json with [json.Marshal]. It excludes Form.
	JSON any
	// Stored is what middleware has stored, in the framework's request or in the
	// request's context.
	Stored map[any]any
}

// Subject returns the subject that a gate with this key would make from a request with
// these values, so that an operator can Peek, Reset or Inspect it. For the principal of
// [Idempotent] the result is an argument of [IdempotencyScope]. Subject sends nothing to
// Redis.
//
// The error has the key's own words, which say what the values lack; it is never a
// refusal. It is also an error if Values has two bodies, or a JSON that cannot be
// marshaled. A Key of an adapter fails, because there is no request of the framework.
// Subject panics on a nil key.
func Subject(key Key, v Values) (string, error) {
	mustKey("Subject", key)
	r := &valued{v: v}
	if err := r.write(); err != nil {
		return "", fmt.Errorf("gate.Subject: %w", err)
	}
	s, err := subject(r, key)
	if _, refused := asRefusal(err); refused {
		return "", fmt.Errorf("gate.Subject: %v", err) //nolint:errorlint // it must not be a refusal any more
	}
	if err != nil {
		return "", fmt.Errorf("gate.Subject: %w", err)
	}
	return s, nil
}

// valued is a Request that is made from Values.
type valued struct {
	v      Values
	body   []byte
	header map[string]string // in canonical form
}

// lacks returns the error of a key that [Subject] asks if the values lack a field. It
// returns nil if a gate asks.
func lacks(r Request, key, field string) error {
	if _, values := r.(*valued); !values {
		return nil
	}
	return fmt.Errorf("%w: %s reads Values.%s, which is empty: set it", ErrWiring, key, field)
}

func (r *valued) write() (err error) {
	r.header = map[string]string{}
	switch {
	case r.v.Form != nil && r.v.JSON != nil:
		return errors.New("Values has both Form and JSON; a request has one body, so leave one of them out")
	case r.v.Form != nil:
		r.header["Content-Type"], r.body = "application/x-www-form-urlencoded", []byte(encode(r.v.Form))
	case r.v.JSON != nil:
		if r.body, err = json.Marshal(r.v.JSON); err != nil {
			return fmt.Errorf("Values.JSON cannot be marshaled: %w", err)
		}
		r.header["Content-Type"] = "application/json"
	}
	for name, line := range r.v.Header {
		r.header[textproto.CanonicalMIMEHeaderKey(name)] = line
	}
	return nil
}

func encode(values map[string]string) string {
	all := url.Values{}
	for name, value := range values {
		all.Set(name, value)
	}
	return all.Encode()
}

func (r *valued) Context() context.Context           { return storing{context.Background(), r.v.Stored} }
func (r *valued) Method() string                     { return r.v.Method }
func (r *valued) Host() string                       { return r.v.Host }
func (r *valued) Path() string                       { return r.v.Path }
func (r *valued) RawQuery() string                   { return encode(r.v.Query) }
func (r *valued) Route() string                      { return r.v.Route }
func (r *valued) Param(name string) string           { return r.v.Params[name] }
func (r *valued) Headers() iter.Seq2[string, string] { return maps.All(r.header) }
func (r *valued) Value(key any) any                  { return r.v.Stored[key] }
func (r *valued) RemoteAddr() netip.AddrPort         { return netip.AddrPortFrom(r.v.Addr, 0) }

func (r *valued) Header(name string) []string {
	if line, ok := r.header[textproto.CanonicalMIMEHeaderKey(name)]; ok {
		return []string{line}
	}
	return nil
}

func (r *valued) Body(limit int64) ([]byte, error) {
	if int64(len(r.body)) > limit {
		return nil, ErrBodyTooLarge
	}
	return r.body, nil
}

// storing is a context with the values that middleware has stored.
type storing struct {
	context.Context
	values map[any]any
}

func (s storing) Value(key any) any { return s.values[key] }
