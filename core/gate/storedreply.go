package gate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/textproto"
	"slices"
	"strings"
)

// A stored reply consists of these, in order:
//
//   - the version, one byte,
//   - the status,
//   - the number of header lines,
//   - for each line its name and its value. The name is its number in storedFields, counted
//     from 1; or 0, and then the name as text. The lines are sorted by name.
//   - the body.
//
// Every number is a uvarint. Every text, and the body, comes after its length.
const storedVersion = 1

// maxStoredLines bounds how much memory a reader allocates for a broken record.
const maxStoredLines = 1 << 10

// storedFields are stored with every reply. Their order is part of the format: new ones
// go to the end.
var storedFields = []string{
	fieldContentType, "Content-Encoding", "Content-Language", "Location",
	"Content-Location", "Etag", "Last-Modified", "Link", fieldCacheControl, "Vary",
}

// secretFields are meant only for the client of the first request. They are not stored,
// because others can read Redis.
var secretFields = []string{"Set-Cookie", "Authorization", "Www-Authenticate", "Proxy-Authenticate"}

var errStoredReply = errors.New("gate: a stored response cannot be read")

// storable are fields that are stored in addition to storedFields. mustStorable makes
// them.
type storable []string

// mustStorable panics on a name that is no field name, that is secret, or that would be
// ignored when the reply is sent.
func mustStorable(constructor string, names []string) storable {
	fields := make(storable, len(names))
	for i, name := range names {
		fields[i] = textproto.CanonicalMIMEHeaderKey(name)
		switch {
		case !isToken(name):
			panic(fmt.Sprintf("gate.%s: %q is no header field name; write one like X-Request-Cost", constructor, name))
		case slices.Contains(secretFields, fields[i]):
			panic(fmt.Sprintf("gate.%s: the header field %s is never stored, because it is for one recipient; leave it out", constructor, name))
		case isFraming(Field{Name: name}):
			panic(fmt.Sprintf("gate.%s: the header field %s follows from the body; leave it out", constructor, name))
		}
	}
	return fields
}

// StoredReply returns r as a gate stores it. It is the argument of idempotency.DoneWith,
// for Guard.Resolve or for a Reconcile function that learned of a response in another
// way, such as by asking the payment provider. Its status and body are those with which r
// would be sent ([Reply.Sent]).
//
// Of the header it keeps Content-Type, Content-Encoding, Content-Language, Location,
// Content-Location, ETag, Last-Modified, Link, Cache-Control and Vary. It also keeps the
// named headers; name those that the gate's options name.
//
// StoredReply returns nil if there is no whole reply to send again: for a Partial one,
// and for one with more than 1024 lines of those fields. For these, use
// idempotency.DoneWithout.
//
// It panics on a name that is no field name, on Content-Length and Transfer-Encoding, and
// on Set-Cookie, Authorization, WWW-Authenticate and Proxy-Authenticate, which are never
// stored.
func StoredReply(r Reply, headers ...string) []byte {
	return encodeReply(r, mustStorable("StoredReply", headers))
}

// encodeReply returns nil for a reply that cannot be sent again whole.
func encodeReply(r Reply, extra storable) []byte {
	if r.Partial {
		return nil
	}
	r = r.Sent()
	lines := storedLines(r.Header, extra)
	if len(lines) > maxStoredLines {
		return nil
	}
	size := 32 + len(r.Body)
	for _, f := range lines {
		size += len(f.Name) + len(f.Value) + 2*binary.MaxVarintLen32
	}
	b := append(make([]byte, 0, size), storedVersion)
	b = binary.AppendUvarint(b, uint64(r.Status)) //nolint:gosec // Sent makes it 200 to 999
	b = binary.AppendUvarint(b, uint64(len(lines)))
	for _, f := range lines {
		number := slices.Index(storedFields, f.Name) + 1
		b = binary.AppendUvarint(b, uint64(number)) //nolint:gosec // -1 + 1 at least
		if number == 0 {
			b = appendText(b, f.Name)
		}
		b = appendText(b, f.Value)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Body)))
	return append(b, r.Body...)
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// storedLines returns the lines that are stored: those that fields would make on an empty
// header.
func storedLines(fields []Field, extra storable) []Field {
	lines := make([]Field, 0, len(fields))
	for _, f := range fields {
		f.Name = textproto.CanonicalMIMEHeaderKey(f.Name)
		if !slices.Contains(storedFields, f.Name) && !slices.Contains(extra, f.Name) {
			continue
		}
		if !f.Add {
			lines = slices.DeleteFunc(lines, func(l Field) bool { return l.Name == f.Name })
		}
		lines = append(lines, f)
	}
	slices.SortStableFunc(lines, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	return lines
}

// decodeReply reads what encodeReply wrote. The body is a part of b. The first line of a
// name replaces what outer middleware has put on the response, because the reply was
// captured with that.
func decodeReply(b []byte) (Reply, error) {
	if len(b) == 0 || b[0] != storedVersion {
		return Reply{}, fmt.Errorf("%w: it is of another version", errStoredReply)
	}
	s := scanner{rest: b[1:]}
	status, count := s.number(), s.number()
	if status < 200 || status > 999 || count > maxStoredLines {
		return Reply{}, errStoredReply
	}
	r := Reply{Status: int(status)}
	for last := ""; count > 0 && !s.broken; count-- {
		f := Field{Name: s.name(), Value: string(s.text())}
		f.Add = f.Name == last
		if f.Name < last {
			s.fail()
		}
		r.Header, last = append(r.Header, f), f.Name
	}
	r.Body = s.text()
	if s.broken || len(s.rest) > 0 || !BodyAllowed(r.Status) && len(r.Body) > 0 {
		return Reply{}, errStoredReply
	}
	return r, nil
}

// scanner reads numbers and texts until something is broken, and nothing after that.
type scanner struct {
	rest   []byte
	broken bool
}

func (s *scanner) number() uint64 {
	n, length := binary.Uvarint(s.rest)
	if length <= 0 {
		s.fail()
		return 0
	}
	s.rest = s.rest[length:]
	return n
}

func (s *scanner) text() []byte {
	n := s.number()
	if n > uint64(len(s.rest)) {
		s.fail()
		return nil
	}
	text := s.rest[:n:n]
	s.rest = s.rest[n:]
	return text
}

func (s *scanner) name() string {
	number := s.number()
	if number > 0 && number <= uint64(len(storedFields)) {
		return storedFields[number-1]
	}
	name := string(s.text())
	if number > 0 || !isToken(name) || name != textproto.CanonicalMIMEHeaderKey(name) || slices.Contains(secretFields, name) || isFraming(Field{Name: name}) {
		s.fail()
	}
	return name
}

func (s *scanner) fail() { s.rest, s.broken = nil, true }
