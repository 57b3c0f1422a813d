package fibertest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"mime/multipart"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatetest"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/gatefake"
)

// formSentAgain: a guard recognizes a form that fasthttp has parsed when it is sent
// again, whatever its boundary, and tells it from another form.
func formSentAgain(t *testing.T, d Driver) {
	sent := []part{
		{"amount", "", "1"}, {"item", "", "tea"}, {"item", "", "cup"}, {"note", "", "two\r\nlines -- "}, {"na\"me", "", ""},
		{"scan", "text/plain", "first"}, {"photo", "image/png", "\x89PNG\r\n"}, {"scan", "text/plain", ""},
	}
	changed := func(i int, p part) []part {
		other := slices.Clone(sent)
		other[i] = p
		return other
	}
	others := map[string][]part{
		"Value":       changed(0, part{"amount", "", "1000"}),
		"Order":       changed(1, sent[2]),
		"Name":        changed(0, part{"amounts", "", "1"}),
		"FileContent": changed(5, part{"scan", "text/plain", "other"}),
		"FileKind":    changed(5, part{"scan", "text/csv", "first"}),
		"FileName":    changed(5, part{"scans", "text/plain", "first"}),
		"NoFile":      changed(5, part{"scan", "", "first"}),
		"Missing":     sent[:len(sent)-1],
		"More":        append(slices.Clone(sent), part{"more", "", ""}),
	}
	for name, boundary := range map[string]string{"Plain": "x", "At": "a@b", "Long": strings.Repeat("b", 80)} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/Stream=%t", name, stream), func(t *testing.T) {
				t.Parallel()
				guard, err := idempotency.New(gatefake.Redis(t), "orders", idempotency.Retry{}, &idempotency.Options{Budget: 30 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				var runs atomic.Int64
				address := d.Serve(t, Config{StreamRequestBody: stream}, gatetest.App{Routes: []gatetest.Route{{
					Method: "POST", Pattern: "/orders", Gates: []gate.Gate{gate.Idempotent(guard, gate.Everyone, nil)},
					Handler: func(x gatetest.Exchange) error {
						runs.Add(1)
						return d.sendOrder(x)
					},
				}}})
				const made = `["tea" "cup"] "\x89PNG\r\n" <nil>`
				if got := sentForm(t, address, boundary, strings.NewReader(form(boundary, sent...))); got != "201  "+made {
					t.Fatalf("the first got %q, want %q", got, "201  "+made)
				}
				for i := range 10 {
					again := fmt.Sprint(boundary, i)
					if got := sentForm(t, address, again, strings.NewReader(form(again, sent...))); got != "201 true "+made {
						t.Fatalf("repetition %d got %q, want %q", i, got, "201 true "+made)
					}
				}
				for what, other := range others {
					if got := sentForm(t, address, boundary, strings.NewReader(form(boundary, other...))); got != "422" {
						t.Errorf("%s: got %q, want \"422\"", what, got)
					}
				}
				if runs.Load() != 1 {
					t.Errorf("the handler ran %d times, want once", runs.Load())
				}
			})
		}
	}
}

// sendOrder answers with what a handler finds in a form.
func (d Driver) sendOrder(x gatetest.Exchange) error {
	form, err := d.RequestCtx(x).MultipartForm()
	if err != nil {
		return err
	}
	photo, err := form.File["photo"][0].Open()
	if err != nil {
		return err
	}
	defer photo.Close()
	content, err := io.ReadAll(photo)
	return x.Send(201, fmt.Sprintf("%q %q %v", form.Value["item"], content, err))
}

// formGate answers with the body, or with the reason why there is none. It asks for the
// body twice.
func formGate(max int64) gate.Gate {
	return told(func(q gate.Request) string {
		body, err := q.Body(max)
		again, errAgain := q.Body(max)
		switch {
		case !bytes.Equal(body, again) || err != errAgain:
			return "asked again, it is another"
		case err != nil:
			return err.Error()
		}
		return string(body)
	})
}

// formWrittenAnew: a form that fasthttp has parsed is always written in the same way, and
// only if a gate finds in it what a handler finds.
func formWrittenAnew(t *testing.T, d Driver) {
	address := d.Serve(t, Config{}, gated(formGate(1<<20)))
	const (
		head  = "--x\r\nContent-Disposition: form-data; name"
		field = head + "=a\r\n\r\n1\r\n"
		line  = head + "*=utf-8''%0D%0A\r\n\r\n2\r\n"
		file  = head + "=\"b\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\n3\r\n"
		end   = "--x--\r\n"
	)
	for name, c := range map[string]struct{ boundary, sent, want string }{
		"None":   {"x", end, end},
		"Sorted": {"x", file + field + line + end, line + field + file + end},
		"HeaderOfAField": {"x", strings.Replace(field, "\r\n\r\n", "\r\nContent-Type: text/csv\r\n\r\n", 1) + end,
			field + end},
		// A handler sees within another field what a gate would take for a field.
		"DelimiterDecoded": {"x", "--x\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" +
			"1=0D=0A--x=0D=0AContent-Disposition: form-data; name=3Db=0D=0A=0D=0A2\r\n--x--\r\n", gate.ErrBodyBroken.Error()},
		"OtherBoundary": {`x"y`, form(`x\"y`, part{"a", "", "1"}), gate.ErrBodyBroken.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := sentForm(t, address, c.boundary, strings.NewReader(c.sent)); got != strings.TrimSpace("200  "+c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// formReadOtherwise: a key of a form is what a handler finds in it, or the request is refused.
func formReadOtherwise(t *testing.T, d Driver) {
	key := gate.ByForm("a", nil)
	keyed := gatefake.Func(func(q gate.Request) gate.Pass {
		value, err := key(q)
		if err != nil {
			return respond(400, "")
		}
		return gate.Pass{Header: []gate.Field{{Name: "X-Key", Value: value}}}
	})
	const field = "Content-Disposition: form-data; name=a\r\n\r\n"
	decoys := "--evil\r\n" + field + "1\r\n--evil--\r\n--real\r\n" + field + "2\r\n--real--\r\n"
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	w.Extra = []byte("\r\n--b\r\n" + field + "1\r\n--b--\r\n")
	_, _ = io.WriteString(w, "--b\r\n"+field+"2\r\n--b--\r\n")
	_ = w.Close()
	var posted bytes.Buffer
	w = gzip.NewWriter(&posted)
	w.Extra = []byte("&a=1&")
	_, _ = io.WriteString(w, "a=2")
	_ = w.Close()
	for name, c := range map[string]struct{ head, body string }{
		"Continued":  {"Content-Type: multipart/form-data; boundary=evil; boundary*0=real\r\n", decoys},
		"Quoted":     {"Content-Type: multipart/form-data; x=\"; boundary=evil\"; boundary=real\r\n", decoys},
		"Packed":     {"Content-Type: multipart/form-data; boundary=b\r\nContent-Encoding: gzip\r\n", packed.String()},
		"Urlencoded": {"Content-Type: application/x-www-form-urlencoded\r\nContent-Encoding: gzip\r\n", posted.String()},
	} {
		for _, config := range []Config{{}, {StreamRequestBody: true}, {DisablePreParseMultipartForm: true}} {
			for framing, body := range map[string]string{
				fmt.Sprintf("Content-Length: %d", len(c.body)): c.body,
				"Transfer-Encoding: chunked":                   fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(c.body), c.body),
			} {
				address := d.Serve(t, config, gatetest.App{Routes: []gatetest.Route{{
					Method: "POST", Pattern: "/", Gates: []gate.Gate{keyed}, Handler: func(x gatetest.Exchange) error { return x.Send(200, "ran") },
				}}})
				if got := exchanged(t, address, "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"+c.head+framing+"\r\n\r\n"+body); len(got) != 1 || !strings.HasPrefix(got[0], "400 ") {
					t.Errorf("%s, %s, %+v: got %q, want 400", name, framing, config, got)
				}
			}
		}
	}
}

// formWithItsBytes: a gate gets a form as it was sent if its bytes are there.
func formWithItsBytes(t *testing.T, d Driver) {
	sent := strings.Replace(form("x", part{"b", "", "1"}, part{"a", "", "2"}), "Content-Disposition", "content-DISPOSITION", 1)
	replacing := d.before(func(rc *fasthttp.RequestCtx) { rc.Request.SetBodyString(sent) })
	for name, c := range map[string]struct {
		config  Config
		around  []gatetest.Middleware
		chunked bool
	}{
		"NotParsed":         {Config{DisablePreParseMultipartForm: true}, nil, false},
		"NotParsedStreamed": {Config{DisablePreParseMultipartForm: true, StreamRequestBody: true}, nil, false},
		"Chunked":           {Config{}, nil, true},
		"ChunkedStreamed":   {Config{StreamRequestBody: true}, nil, true},
		"Replaced":          {Config{}, []gatetest.Middleware{replacing}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for max, want := range map[int]string{len(sent): strings.TrimSpace(sent), len(sent) - 1: gate.ErrBodyTooLarge.Error()} {
				address := d.Serve(t, c.config, gated(formGate(int64(max)), c.around...))
				body := io.Reader(strings.NewReader(sent))
				if c.chunked {
					body = io.MultiReader(body) // whose length net/http does not know
				}
				if got := sentForm(t, address, "x", body); got != "200  "+want {
					t.Errorf("with %d got %q, want %q", max, got, want)
				}
			}
		})
	}
}

// formTooLarge: a form that was parsed counts with the size in which it was sent.
func formTooLarge(t *testing.T, d Driver) {
	sent := form("x", part{"a", "", strings.Repeat("v", 1000)}, part{"b", "text/plain", strings.Repeat("f", 1000)})
	for max, want := range map[int]string{len(sent): "200", len(sent) - 1: "413"} {
		key := gate.ByForm("a", &gate.BodyOptions{MaxBody: int64(max)})
		address := d.Serve(t, Config{}, gated(gatefake.Func(func(q gate.Request) gate.Pass {
			if value, err := key(q); err != nil || len(value) < 1000 {
				return respond(413, "")
			}
			return respond(200, "")
		})))
		if got := sentForm(t, address, "x", strings.NewReader(sent)); got != want {
			t.Errorf("with %d of %d got %q, want %s", max, len(sent), got, want)
		}
	}
}

// formFound: a key finds a field in a form that was parsed, also by an unusual name.
func formFound(t *testing.T, d Driver) {
	key := gate.ByForm("näme \"7\"", nil)
	address := d.Serve(t, Config{}, gated(told(func(q gate.Request) string {
		value, err := key(q)
		return fmt.Sprint(value, err)
	})))
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.WriteField("näme \"7\"", "x=1")
	_ = w.WriteField("other", "2")
	file, _ := w.CreateFormFile("näme \"7\"", "a.txt")
	_, _ = io.WriteString(file, "3")
	_ = w.Close()
	if got := sentForm(t, address, w.Boundary(), &b); got != "200  form:näme \"7\"=x=1<nil>" {
		t.Errorf("got %q, want 200 and the field's value, x=1", got)
	}
}

// formLongFile: a file too long for memory is read from where fasthttp keeps it. If
// middleware has moved it away, the body fails.
func formLongFile(t *testing.T, d Driver) {
	const limit = 20 << 20
	content := strings.Repeat("0123456789abcdef", 17<<16)
	sent := form("x", part{"a", "text/plain", content})
	saved := filepath.Join(t.TempDir(), "a.txt")
	for name, c := range map[string]struct {
		taken func(*fasthttp.RequestCtx)
		want  string
	}{
		"There": {func(*fasthttp.RequestCtx) {}, fmt.Sprint(len(sent), " <nil>")},
		"Saved": {func(rc *fasthttp.RequestCtx) {
			file, err := rc.FormFile("a")
			if err == nil {
				err = fasthttp.SaveMultipartFile(file, saved)
			}
			if err != nil {
				t.Error(err)
			}
		}, "0 " + gate.ErrBodyConsumed.Error()},
		"Removed": {func(rc *fasthttp.RequestCtx) {
			rc.Request.RemoveMultipartFormFiles()
		}, "0 " + gate.ErrBodyConsumed.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := d.Serve(t, Config{BodyLimit: limit}, gated(bodies(limit), d.before(c.taken)))
			if got := sentForm(t, address, "x", strings.NewReader(sent)); got != "200  "+c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// formCopiedOnce runs alone, because it counts allocations.
func formCopiedOnce(t *testing.T, d Driver) {
	var allocated uint64
	address := d.Serve(t, Config{}, gated(told(func(q gate.Request) string {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		body, err := q.Body(1 << 20)
		runtime.ReadMemStats(&after)
		allocated = after.TotalAlloc - before.TotalAlloc
		return fmt.Sprint(len(body), err)
	})))
	half := strings.Repeat("x", 500_000)
	sent := form("x", part{"a", "", half}, part{"b", "text/plain", half})
	want := fmt.Sprintf("200  %d <nil>", len(sent)-len(`""`)) // of the name
	if got := sentForm(t, address, "x", strings.NewReader(sent)); got != want {
		t.Errorf("got %q for %d bytes, want %q", got, len(sent), want)
	}
	if allocated > uint64(len(sent))*11/10 {
		t.Errorf("%d bytes were allocated for a form of %d, want %d at most", allocated, len(sent), len(sent)*11/10)
	}
}
