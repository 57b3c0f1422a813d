package gate

import (
	"bytes"
	"errors"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/neap-go/neap/internal/redistest"
)

// applied is what fields make of a response that already has the header h.
func applied(h http.Header, fields []Field) http.Header {
	for _, f := range fields {
		if f.Add {
			h.Add(f.Name, f.Value)
		} else {
			h.Set(f.Name, f.Value)
		}
	}
	return h
}

func order(size int) Reply {
	return Reply{
		Status: 201,
		Header: []Field{
			{Name: "Content-Length", Value: "1024"},
			{Name: "Content-Type", Value: "application/json; charset=utf-8"},
			{Name: "Date", Value: "Sat, 21 Nov 2026 18:00:00 GMT"},
			{Name: "Etag", Value: `"686897696a7c876b7e686897696a7c87"`},
			{Name: "Last-Modified", Value: "Sat, 21 Nov 2026 18:00:00 GMT"},
			{Name: "Location", Value: "/orders/8e03978e-40d5-43e8-bc93-6894a57f9324"},
			{Name: "Set-Cookie", Value: "session=secret"},
			{Name: "X-Trace", Value: "4bf92f3577b34da6a3ce929d0e0e4736"},
		},
		Body: bytes.Repeat([]byte("x"), size),
	}
}

func TestStoredReplyIsCompact(t *testing.T) {
	t.Parallel()
	if got := len(StoredReply(order(1024))); got > 1024*115/100 {
		t.Errorf("1 KB is stored in %d bytes, want %d at most", got, 1024*115/100)
	}
}

// Records outlive the process that wrote them.
func TestStoredRepliesStay(t *testing.T) {
	t.Parallel()
	want := Reply{Status: 201, Body: []byte("made"), Header: []Field{
		{Name: "Content-Encoding", Value: "c"}, {Name: "Content-Language", Value: "d"}, {Name: "Content-Location", Value: "f"},
		{Name: "Content-Type", Value: "b"}, {Name: "Etag", Value: "g"}, {Name: "Last-Modified", Value: "h"}, {Name: "Link", Value: "i"},
		{Name: "Link", Value: "j", Add: true}, {Name: "Location", Value: "e"}, {Name: "X-Cost", Value: "k"},
	}}
	const text = "\x01\xc9\x01\x0a\x02\x01c\x03\x01d\x05\x01f\x01\x01b\x06\x01g\x07\x01h\x08\x01i\x08\x01j\x04\x01e\x00\x06X-Cost\x01k\x04made"
	if got := StoredReply(want, "x-cost"); string(got) != text {
		t.Errorf("stored as %q, want %q", got, text)
	}
	if got, err := decodeReply([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read as %+v, %v, want %+v", got, err, want)
	}
}

func TestStoredReplies(t *testing.T) {
	t.Parallel()
	json, link := Field{Name: "Content-Type", Value: "a/b"}, func(v string, add bool) Field { return Field{Name: "Link", Value: v, Add: add} }
	for name, c := range map[string]struct{ reply, want Reply }{
		"nothing":               {Reply{}, Reply{Status: 200}},
		"a body":                {Reply{Status: 404, Header: []Field{json}, Body: []byte("\x00\xff")}, Reply{Status: 404, Header: []Field{json}, Body: []byte("\x00\xff")}},
		"204 has no body":       {Reply{Status: 204, Body: []byte("x")}, Reply{Status: 204}},
		"304 has none, either":  {Reply{Status: 304, Header: []Field{{Name: "Etag", Value: `"a"`}}}, Reply{Status: 304, Header: []Field{{Name: "Etag", Value: `"a"`}}}},
		"an impossible status":  {Reply{Status: 100}, Reply{Status: 500}},
		"lines in order":        {Reply{Header: []Field{link("b", true), json, link("a", true), link("b", true)}}, Reply{Status: 200, Header: []Field{json, link("b", false), link("a", true), link("b", true)}}},
		"a line replaced":       {Reply{Header: []Field{link("a", false), link("b", true), link("c", false)}}, Reply{Status: 200, Header: []Field{link("c", false)}}},
		"names in another case": {Reply{Header: []Field{{Name: "content-TYPE", Value: "a/b"}}}, Reply{Status: 200, Header: []Field{json}}},
		"an empty line":         {Reply{Header: []Field{link("", true), link("", true)}}, Reply{Status: 200, Header: []Field{link("", false), link("", true)}}},
		"others' fields": {Reply{Header: []Field{
			{Name: "Set-Cookie", Value: "a"}, {Name: "set-cookie", Value: "a"}, {Name: "Authorization", Value: "a"}, {Name: "WWW-Authenticate", Value: "a"},
			{Name: "Proxy-Authenticate", Value: "a"}, {Name: "Date", Value: "a"}, {Name: "Content-Length", Value: "9"}, {Name: "X-Cost", Value: "a"},
			{Name: "Idempotent-Replayed", Value: "true"}, {Name: "", Value: "a"}, {Name: "\n", Value: "a"},
		}}, Reply{Status: 200}},
	} {
		b := StoredReply(c.reply)
		got, err := decodeReply(b)
		if len(got.Body) == 0 && len(c.want.Body) == 0 {
			got.Body = nil
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, c.want)
		}
		if strings.Contains(string(b), "secret") {
			t.Errorf("%s: a secret is in %q, want none", name, b)
		}
	}
	if got := StoredReply(Reply{Status: 200, Body: []byte("begun"), Partial: true}); got != nil {
		t.Errorf("a partial reply is stored as %q, want it not stored", got)
	}
	if b := StoredReply(order(10)); strings.Contains(string(b), "secret") || strings.Contains(string(b), "Cookie") {
		t.Errorf("a secret or a cookie is in %q, want none", b)
	}
}

// A replay replaces the fields that middleware outside puts on every response, because
// the reply was captured with them.
func TestStoredReplyReplacesWhatIsThere(t *testing.T) {
	t.Parallel()
	got, err := decodeReply(StoredReply(Reply{Header: []Field{{Name: "Link", Value: "a"}, {Name: "Link", Value: "b", Add: true}}}))
	h := applied(http.Header{"Link": {"a", "outer"}}, got.Header)
	if err != nil || !reflect.DeepEqual(h["Link"], []string{"a", "b"}) {
		t.Errorf("got %v, %v, want the stored lines a and b alone", h, err)
	}
}

func TestStoredHeadersPanicAtWiring(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Set-Cookie", "set-cookie", "Authorization", "WWW-Authenticate", "Www-Authenticate", "proxy-authenticate",
		"Content-Length", "transfer-encoding", "", " ", "X Cost", "X-Cost:", "X-C\xc3\xb6st", "Link\n",
	} {
		func() {
			defer func() {
				s, ok := recover().(string)
				if !ok || !strings.HasPrefix(s, "gate.StoredReply: ") || !strings.Contains(s, "; ") {
					t.Errorf("%q: recovered %q, want a panic that begins with gate.StoredReply and names a remedy",
						name, s)
				}
			}()
			StoredReply(Reply{}, "X-Cost", name)
		}()
	}
	names := []string{"x-cost", "Link"}
	fields := mustStorable("Test", names)
	names[0] = "Set-Cookie"
	if !reflect.DeepEqual(fields, storable{"X-Cost", "Link"}) {
		t.Errorf("got %q, want X-Cost and Link", fields)
	}
}

func TestStoredReplyRoundTrip(t *testing.T) {
	t.Parallel()
	r := redistest.Rand(t)
	names := []string{"Content-Type", "Etag", "Link", "Link", "location", "X-Cost", "X-cost", "X-Trace", "Set-Cookie", "Date"}
	kept := map[string]bool{"Content-Type": true, "Etag": true, "Link": true, "Location": true, "X-Cost": true, "X-Trace": true}
	for range redistest.Ops(20_000) {
		reply := Reply{Status: 200 + r.IntN(800), Body: []byte(strings.Repeat(random(r, "ab\x00\xff"), r.IntN(300)))}
		for range r.IntN(8) {
			reply.Header = append(reply.Header, Field{Name: names[r.IntN(len(names))], Value: strings.Repeat(random(r, "ab, "), r.IntN(90)), Add: r.IntN(2) == 0})
		}
		given := slices.Clone(reply.Header)
		b := StoredReply(reply, "X-Cost", "x-trace")
		got, err := decodeReply(b)
		if err != nil {
			t.Fatalf("%+v: got the error %v, want none", reply, err)
		}
		want := applied(http.Header{}, reply.Header)
		for name := range want {
			if !kept[name] {
				want.Del(name)
			}
		}
		if !BodyAllowed(reply.Status) {
			reply.Body = nil
		}
		if got.Status != reply.Status || !bytes.Equal(got.Body, reply.Body) || got.Partial || !reflect.DeepEqual(applied(http.Header{}, got.Header), want) {
			t.Fatalf("%+v came back as %+v, want the fields %v", reply, got, want)
		}
		if again := StoredReply(got, "X-Trace", "X-Cost"); !bytes.Equal(again, b) {
			t.Fatalf("%q is stored again as %q, want the same", b, again)
		}
		if !slices.Equal(reply.Header, given) {
			t.Fatalf("storing changed the fields %+v to %+v, want no change", given, reply.Header)
		}
	}
}

func TestBrokenStoredReplies(t *testing.T) {
	t.Parallel()
	whole := StoredReply(order(100), "Vary")
	for i := range whole {
		if _, err := decodeReply(whole[:i]); !errors.Is(err, errStoredReply) {
			t.Errorf("the first %d bytes: got %v, want %v", i, err, errStoredReply)
		}
	}
	const much = "\xff\xff\xff\xff\xff\xff\xff\xff\x7f" // 2^63 - 1
	for name, text := range map[string]string{
		"nothing":            "",
		"another version":    "\x02" + string(whole[1:]),
		"something behind":   string(whole) + "x",
		"a status below":     "\x01\x64\x00\x00",
		"a status above":     "\x01\xe8\x07\x00\x00",
		"a huge status":      "\x01" + much + "\x00\x00",
		"no number":          "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"a body with 204":    "\x01\xcc\x01\x00\x01x",
		"a huge body":        "\x01\xc8\x01\x00" + much + "x",
		"many lines":         "\x01\xc8\x01" + much + "\x01\x00\x00",
		"a huge value":       "\x01\xc8\x01\x01\x01" + much + "\x00",
		"a huge name":        "\x01\xc8\x01\x01\x00" + much + "\x00\x00",
		"an unknown number":  "\x01\xc8\x01\x01\x0b\x01a\x00",
		"number and name":    "\x01\xc8\x01\x01\x0b\x06X-Cost\x01a\x00",
		"no name":            "\x01\xc8\x01\x01\x00\x00\x01a\x00",
		"no field name":      "\x01\xc8\x01\x01\x00\x03a:b\x01a\x00",
		"another case":       "\x01\xc8\x01\x01\x00\x01a\x01a\x00",
		"a cookie":           "\x01\xc8\x01\x01\x00\x0aSet-Cookie\x01a\x00",
		"a challenge":        "\x01\xc8\x01\x01\x00\x10Www-Authenticate\x01a\x00",
		"a length":           "\x01\xc8\x01\x01\x00\x0eContent-Length\x01a\x00",
		"lines out of order": "\x01\xc8\x01\x02\x08\x01a\x01\x01a\x00",
	} {
		got, err := decodeReply([]byte(text))
		if !errors.Is(err, errStoredReply) || !reflect.DeepEqual(got, Reply{}) {
			t.Errorf("%s: got %+v, %v, want the zero reply and %v", name, got, err, errStoredReply)
		}
	}
}

// A record costs as much memory as it holds, whatever length it claims.
func TestBrokenStoredReplyAllocations(t *testing.T) {
	for name, text := range map[string]string{
		"lines":        "\x01\xc8\x01\x80\x80\x20" + strings.Repeat("\x01\x00", 1<<19),
		"some lines":   "\x01\xc8\x01\x80\x08" + strings.Repeat("\x01\x00", 1<<10),
		"claims":       "\x01\xc8\x01\xff\xff\xff\xff\x0f\x01\x00",
		"claimed text": "\x01\xc8\x01\x00\xff\xff\xff\xff\x0fx",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := decodeReply([]byte(text)); err == nil {
			t.Errorf("%s: got no error, want one", name)
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > uint64(len(text))+256<<10 {
			t.Errorf("%s: got %d bytes allocated for %d, want 256 KiB more at most", name, got, len(text))
		}
	}
}

func TestStoredReplyOfManyLines(t *testing.T) {
	t.Parallel()
	most := Reply{Header: slices.Repeat([]Field{{Name: "Link", Value: "a", Add: true}}, 1024)}
	if got, err := decodeReply(StoredReply(most)); err != nil || len(got.Header) != 1024 {
		t.Errorf("got %d lines, %v, want 1024", len(got.Header), err)
	}
	more := Reply{Header: append(most.Header, most.Header[0])}
	if got := StoredReply(more); got != nil {
		t.Errorf("1025 lines are stored in %d bytes, want them not stored", len(got))
	}
}

// Whatever can be decoded is a reply that is stored with the same bytes, and names no
// secret field.
func FuzzDecodeReply(f *testing.F) {
	f.Add([]byte{})
	f.Add(StoredReply(Reply{}))
	f.Add(StoredReply(order(10)))
	f.Add(StoredReply(order(200), "Vary", "Cache-Control"))
	f.Add(StoredReply(Reply{Status: 204, Header: []Field{{Name: "Link", Value: "a"}, {Name: "Link", Value: "b", Add: true}}}))
	f.Add([]byte("\x01\xc8\x01\x01\x00\x0aSet-Cookie\x01a\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		reply, err := decodeReply(b)
		if err != nil {
			if !errors.Is(err, errStoredReply) || !reflect.DeepEqual(reply, Reply{}) {
				t.Fatalf("got %+v, %v, want the zero reply and %v", reply, err, errStoredReply)
			}
			return
		}
		var names []string
		for _, f := range reply.Header {
			names = append(names, f.Name)
		}
		again, err := decodeReply(StoredReply(reply, names...)) // panics on a secret
		if err != nil || !reflect.DeepEqual(again, reply) {
			t.Fatalf("%+v is stored as %+v, %v, want the same", reply, again, err)
		}
	})
}
