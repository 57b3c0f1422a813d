package gate

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash"
	"mime"
	"strings"

	"github.com/neap-go/neap/core/internal/jcs"
)

// fingerprint tells requests apart by their method, path, query, media type and body. It
// reads up to limit bytes of the body, and returns 43 characters of base64url. Paths and
// queries count as they are spelled. Parameters of the Content-Type do not count, and
// multipart/form-data counts without its boundary, which clients choose anew for each
// attempt. No other header field counts. how says whether JSON counts in its canonical form.
//
// Its errors are for answers.refuse: the body is too large, broken, or consumed, or it is JSON
// without a canonical form.
func fingerprint(r Request, limit int64, how Fingerprint) (string, error) {
	body, err := readBody(r, limit)
	if err != nil {
		return "", err
	}
	kinds, boundary := contentKind(r.Header(fieldContentType))
	p := newPrint(r, "whole")
	p.text(r.RawQuery())
	p.number(uint64(len(kinds)))
	for _, kind := range kinds {
		p.text(kind)
	}
	delimiter := []byte("--" + boundary)
	switch {
	case how == CanonicalJSON && len(body) > 0 && len(kinds) == 1 && isJSON(kinds[0]):
		form, err := jcs.Canonical(body)
		if err != nil {
			return "", refuseForm(err)
		}
		p.text("canonical")
		p.bytes(form)
	case boundary != "" && delimits(body, delimiter):
		p.text("parts")
		p.pieces(body, delimiter)
	default:
		p.text("bytes")
		p.text(boundary) // a lenient reader may still find parts by it
		p.bytes(body)
	}
	return p.sum(), nil
}

// refuseForm refuses JSON that has no canonical form.
func refuseForm(err error) error {
	switch {
	case errors.Is(err, jcs.ErrTwice):
		return Refuse(400, "The body of the request has a member twice")
	case errors.Is(err, jcs.ErrNumber):
		return Refuse(400, "The body of the request has a number that is no double (IEEE 754); send it as a string")
	case errors.Is(err, jcs.ErrDepth):
		return Refuse(400, "The body of the request is nested too deeply")
	}
	return Refuse(400, "The body of the request is not valid JSON")
}

// fingerprintOf tells requests apart by their method, their path, and what fields, in
// order, find in them. A missing field counts as missing. A request that has none of them
// is told apart by method and path alone. Any other error of a field is for
// answers.refuse.
func fingerprintOf(r Request, fields []Key) (string, error) {
	p := newPrint(r, "fields")
	p.number(uint64(len(fields)))
	for _, field := range fields {
		value, err := ask(r, field)
		switch {
		case err == nil:
			p.text("is")
			p.text(value)
		case errors.Is(err, ErrMissing):
			p.text("missing")
		default:
			return "", err
		}
	}
	return p.sum(), nil
}

// contentKind returns the media type, or the lines themselves if they have none that can
// be parsed. It also returns the boundary if the type is multipart/form-data.
func contentKind(lines []string) (kinds []string, boundary string) {
	if len(lines) != 1 {
		return lines, ""
	}
	kind, params, _ := mime.ParseMediaType(lines[0]) // with broken parameters the kind is still returned
	switch {
	case kind == "multipart/form-data":
		boundary = params["boundary"]
	case kind != "":
	case strings.TrimSpace(lines[0]) == "": // fasthttp does not tell an empty line from no line
		return nil, ""
	default:
		kind = lines[0]
	}
	return []string{kind}, boundary
}

// printer hashes what it is given. It writes the length before each value, so that
// nothing can move from one value to the next.
type printer struct {
	hash   hash.Hash
	length [8]byte // here so that it is allocated once
}

// newPrint begins the fingerprint of a request. Each way of making fingerprints begins
// differently.
func newPrint(r Request, way string) *printer {
	p := &printer{hash: sha256.New()}
	p.text(way)
	p.text(r.Method())
	p.text(r.Path())
	return p
}

func (p *printer) number(n uint64) {
	binary.BigEndian.PutUint64(p.length[:], n)
	p.hash.Write(p.length[:])
}

func (p *printer) bytes(b []byte) {
	p.number(uint64(len(b)))
	p.hash.Write(b)
}

func (p *printer) text(s string) { p.bytes([]byte(s)) }

func (p *printer) sum() string {
	return base64.RawURLEncoding.EncodeToString(p.hash.Sum(nil))
}
