package fiberlimit_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/fiberlimit"
	"github.com/neap-go/neap/internal/gatefake"
)

// part is a part of a form as it is sent; it is a file when it has a kind.
type part struct{ name, kind, content string }

func form(boundary string, parts ...part) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "--%s\r\nContent-Disposition: form-data; name=%q", boundary, p.name)
		if p.kind != "" {
			fmt.Fprintf(&b, "; filename=\"a.txt\"\r\nContent-Type: %s", p.kind)
		}
		fmt.Fprintf(&b, "\r\n\r\n%s\r\n", p.content)
	}
	return b.String() + "--" + boundary + "--\r\n"
}

// client has connections of its own: each httptest.Server that ends closes those of
// http.DefaultClient, also for a request that is about to be sent.
var client = &http.Client{Transport: &http.Transport{}}

// sentForm is answered with a status, whether it was replayed, and a body.
func sentForm(t *testing.T, address, boundary string, body io.Reader) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+address+"/orders", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", fmt.Sprintf("multipart/form-data; boundary=%q", boundary))
	r.Header.Set("Idempotency-Key", "k")
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode >= 400 {
		answer = nil
	}
	return strings.TrimSpace(fmt.Sprintln(response.StatusCode, response.Header.Get("Idempotent-Replayed"), string(answer)))
}

// A form that Fiber has parsed is told from another and known when it comes
// again, whatever its boundary.
func TestParsedFormThatIsSentAgain(t *testing.T) {
	t.Parallel()
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
			t.Run(fmt.Sprint(name, stream), func(t *testing.T) {
				t.Parallel()
				guard, err := idempotency.New(gatefake.Redis(t), "orders", &idempotency.Options{Budget: 5 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				var runs atomic.Int64
				app := fiber.New(fiber.Config{DisableStartupMessage: true, StreamRequestBody: stream})
				app.Post("/orders", fiberlimit.Middleware(gate.Idempotent(guard, gate.Everyone, nil)), func(c *fiber.Ctx) error {
					runs.Add(1)
					form, err := c.MultipartForm()
					if err != nil {
						return err
					}
					photo, err := form.File["photo"][0].Open()
					if err != nil {
						return err
					}
					defer photo.Close()
					content, err := io.ReadAll(photo)
					return c.Status(201).SendString(fmt.Sprintf("%q %q %v", form.Value["item"], content, err))
				})
				address := listening(t, app)
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

// formGate answers with Body, or why there is none; asked twice it says the same.
func formGate(max int64) gate.Gate {
	return gatefake.Func(func(q gate.Request) gate.Pass {
		body, err := q.Body(max)
		again, errAgain := q.Body(max)
		if !bytes.Equal(body, again) || err != errAgain {
			return respond(500, "asked again, it is another")
		}
		if err != nil {
			return respond(200, err.Error())
		}
		return respond(200, string(body))
	})
}

func formServer(t *testing.T, config fiber.Config, handlers ...fiber.Handler) string {
	config.DisableStartupMessage = true
	app := fiber.New(config)
	app.Post("/orders", handlers...)
	return listening(t, app)
}

func TestParsedFormWrittenAnew(t *testing.T) {
	t.Parallel()
	address := formServer(t, fiber.Config{}, fiberlimit.Middleware(formGate(1<<20)))
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
		// What a gate would take for a field, a handler sees within another.
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

func TestFormsWithTheirBytes(t *testing.T) {
	t.Parallel()
	sent := strings.Replace(form("x", part{"b", "", "1"}, part{"a", "", "2"}), "Content-Disposition", "content-DISPOSITION", 1)
	replacing := func(c *fiber.Ctx) error { c.Request().SetBodyString(sent); return c.Next() }
	next := (*fiber.Ctx).Next
	for name, c := range map[string]struct {
		config  fiber.Config
		outside fiber.Handler
		chunked bool
	}{
		"NotParsed":         {fiber.Config{DisablePreParseMultipartForm: true}, next, false},
		"NotParsedStreamed": {fiber.Config{DisablePreParseMultipartForm: true, StreamRequestBody: true}, next, false},
		"Chunked":           {fiber.Config{}, next, true},
		"ChunkedStreamed":   {fiber.Config{StreamRequestBody: true}, next, true},
		"Replaced":          {fiber.Config{}, replacing, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for max, want := range map[int]string{len(sent): strings.TrimSpace(sent), len(sent) - 1: gate.ErrBodyTooLarge.Error()} {
				address := formServer(t, c.config, c.outside, fiberlimit.Middleware(formGate(int64(max))))
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

func TestParsedFormTooLarge(t *testing.T) {
	t.Parallel()
	sent := form("x", part{"a", "", strings.Repeat("v", 1000)}, part{"b", "text/plain", strings.Repeat("f", 1000)})
	for max, want := range map[int]string{len(sent): "200", len(sent) - 1: "413"} {
		key := gate.ByForm("a", &gate.BodyOptions{MaxBody: int64(max)})
		address := formServer(t, fiber.Config{}, fiberlimit.Middleware(gatefake.Func(func(q gate.Request) gate.Pass {
			if value, err := key(q); err != nil || len(value) < 1000 {
				return respond(413, "")
			}
			return gate.Pass{}
		})), func(c *fiber.Ctx) error { return nil })
		if got := sentForm(t, address, "x", strings.NewReader(sent)); got != want {
			t.Errorf("with %d of %d got %q, want %s", max, len(sent), got, want)
		}
	}
}

func TestParsedFormFoundByItsField(t *testing.T) {
	t.Parallel()
	key := gate.ByForm("näme \"7\"", nil)
	address := formServer(t, fiber.Config{}, fiberlimit.Middleware(gatefake.Func(func(q gate.Request) gate.Pass {
		value, err := key(q)
		return respond(200, fmt.Sprint(value, err))
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

// A file too long for memory is read from where fasthttp keeps it, and is
// missed when middleware has taken it away.
func TestParsedFormWithALongFile(t *testing.T) {
	t.Parallel()
	const limit = 20 << 20
	content := strings.Repeat("0123456789abcdef", 17<<16)
	sent := form("x", part{"a", "text/plain", content})
	config := fiber.Config{BodyLimit: limit}
	saved := filepath.Join(t.TempDir(), "a.txt")
	for name, c := range map[string]struct {
		outside fiber.Handler
		want    string
	}{
		"There": {(*fiber.Ctx).Next, fmt.Sprint(len(sent), " <nil>")},
		"Saved": {func(c *fiber.Ctx) error {
			file, err := c.FormFile("a")
			if err == nil {
				err = c.SaveFile(file, saved)
			}
			if err != nil {
				return err
			}
			return c.Next()
		}, "0 " + gate.ErrBodyConsumed.Error()},
		"Removed": {func(c *fiber.Ctx) error {
			c.Request().RemoveMultipartFormFiles()
			return c.Next()
		}, "0 " + gate.ErrBodyConsumed.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := formServer(t, config, c.outside, fiberlimit.Middleware(bodies(limit)))
			if got := sentForm(t, address, "x", strings.NewReader(sent)); got != "200  "+c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestParsedFormIsCopiedOnce(t *testing.T) { //nolint:paralleltest // it counts what is allocated
	var allocated uint64
	address := formServer(t, fiber.Config{}, fiberlimit.Middleware(gatefake.Func(func(q gate.Request) gate.Pass {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		body, err := q.Body(1 << 20)
		runtime.ReadMemStats(&after)
		allocated = after.TotalAlloc - before.TotalAlloc
		return respond(200, fmt.Sprint(len(body), err))
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
