package gate

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"strings"
	"testing"

	"github.com/neap-go/neap/internal/redistest"
)

func part(name, content string) string {
	return `Content-Disposition: form-data; name="` + name + "\"\r\n\r\n" + content
}

// body is a multipart body as clients send it.
func body(boundary string, parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("--" + boundary + "\r\n" + p + "\r\n")
	}
	return b.String() + "--" + boundary + "--\r\n"
}

func printOfForm(t *testing.T, boundary, text string) string {
	t.Helper()
	return printOf(t, asked{"POST", "/", "", mime.FormatMediaType("multipart/form-data", map[string]string{"boundary": boundary}), text}.request())
}

// meaning is how a handler reads a request.
func meaning(a asked) string {
	kind, params, _ := mime.ParseMediaType(a.kind)
	if kind == "" {
		kind = strings.TrimSpace(a.kind)
	}
	content := "raw " + a.body
	if kind == "multipart/form-data" && params["boundary"] != "" {
		content = readParts(a.body, params["boundary"])
	}
	return fmt.Sprintf("%q", []string{a.method, a.path, a.query, kind, content})
}

// readParts reads a form as handlers do.
func readParts(text, boundary string) string {
	var b strings.Builder
	r := multipart.NewReader(strings.NewReader(text), boundary)
	for {
		p, err := r.NextPart()
		if err == io.EOF {
			return "parts " + b.String()
		}
		if err != nil {
			return "broken " + b.String()
		}
		content, err := io.ReadAll(p)
		fmt.Fprintf(&b, "%v %q %v,", p.Header, content, err != nil)
	}
}

func TestMultipartTable(t *testing.T) {
	t.Parallel()
	a, b := part("a", "1"), part("b", "2")
	file := func(name, kind string) string {
		return `Content-Disposition: form-data; name="f"; filename="` + name + "\"\r\nContent-Type: " + kind + "\r\n\r\nx"
	}
	groups := map[string][]string{ // those of one group are the same form
		"two":                {body("b", a, b), body("c", a, b), body("------WebKitFormBoundary7MA4YWxkTrZu0gW", a, b)},
		"reordered":          {body("b", b, a)},
		"renamed":            {body("b", part("c", "1"), b)},
		"another value":      {body("b", part("a", "2"), b)},
		"split":              {body("b", part("a", ""), part("a", "1"), b)},
		"joined":             {body("b", part("a", "1\r\n"+b))},
		"one":                {body("b", a), body("c", a)},
		"none":               {body("b"), body("c")},
		"none, as Go's":      {"\r\n" + body("b"), "\r\n" + body("c")},
		"no content":         {body("b", part("a", "")), body("c", part("a", ""))},
		"a file":             {body("b", file("x.txt", "text/plain")), body("c", file("x.txt", "text/plain"))},
		"of another name":    {body("b", file("y.txt", "text/plain"))},
		"in a directory":     {body("b", file("d/x.txt", "text/plain"))},
		"of another type":    {body("b", file("x.txt", "text/html"))},
		"with line breaks":   {body("b", part("a", "\r\n\r\n")), body("c", part("a", "\r\n\r\n"))},
		"with a dash":        {body("b", part("a", "--")), body("c", part("a", "--"))},
		"encoded":            {body("b", "Content-Transfer-Encoding: quoted-printable\r\n"+part("a", "=31"))},
		"not so encoded":     {body("b", part("a", "=31"))},
		"raw: cut off":       {"--b\r\n" + a},
		"raw: cut in a mark": {"--b\r\n" + a + "\r\n--b\r\n" + b + "\r\n--b-"},
		"raw: preamble":      {"x\r\n" + body("b", a)},
		"raw: epilogue":      {body("b", a) + "x"},
		"raw: ended twice":   {body("b", a) + body("b", b)},
		"raw: padded":        {strings.Replace(body("b", a), "--b\r\n", "--b \r\n", 1)},
		"raw: bare LF":       {strings.ReplaceAll(body("b", a), "\r\n", "\n")},
		"raw: none":          {""},
		"raw: text":          {"x"},
		"raw: like a mark":   {body("b", part("a", "\r\n--bc"))},
		"raw: within a line": {body("b", part("a", "x--b\r\n"))},
		"raw: LF mark":       {body("b", part("a", "\n--b\n"))},
	}
	prints := map[string]string{}
	for name, texts := range groups {
		for i, text := range texts {
			boundary := strings.TrimSuffix(strings.TrimPrefix(text[strings.LastIndex(text, "\r\n--")+1:], "\n--"), "--\r\n")
			if strings.HasPrefix(name, "raw") || strings.HasPrefix(name, "none") {
				boundary = "bc"[i : i+1]
			}
			got := printOfForm(t, boundary, text)
			if other, ok := prints[got]; ok && other != name {
				t.Errorf("%s and %s have one fingerprint, want two", name, other)
			}
			if i > 0 && prints[got] != name {
				t.Errorf("%s: got another fingerprint with the boundary %s, want the same", name, boundary)
			}
			prints[got] = name
			if raw := !delimits([]byte(text), []byte("--"+boundary)); raw != strings.HasPrefix(name, "raw") {
				t.Errorf("%s: got hashed raw %t, want %t", name, raw, !raw)
			}
		}
	}
}

// If two readers could split a body differently, it does not count as parts: with another
// boundary, the same pieces may be another form.
func TestMultipartBoundariesWithinParts(t *testing.T) {
	t.Parallel()
	for _, inner := range []string{"\r\n--%s\r\n", "\r\n--%s--\r\n", "\n--%s\n", "\r\n--%s \r\n", "--%sx", "\r\n--%sx", "x--%s\r\n"} {
		one := body("b", part("a", fmt.Sprintf(inner, "b")))
		two := body("c", part("a", fmt.Sprintf(inner, "b")))
		if readParts(one, "b") != readParts(two, "c") && printOfForm(t, "b", one) == printOfForm(t, "c", two) {
			t.Errorf("%q and %q have one fingerprint, want two", one, two)
		}
		three := body("c", part("a", fmt.Sprintf(inner, "c")))
		if readParts(one, "b") != readParts(three, "c") && printOfForm(t, "b", one) == printOfForm(t, "c", three) {
			t.Errorf("%q and %q have one fingerprint, want two", one, three)
		}
	}
}

// Forms that Go's own writer makes, with a boundary of its choosing, are told apart by
// their parts.
func TestMultipartOfRandomForms(t *testing.T) {
	t.Parallel()
	r := redistest.Rand(t)
	write := func(fields [][4]string) (boundary, text string) {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		for _, field := range fields {
			disposition := map[string]string{"name": field[0]}
			if field[1] != "" {
				disposition["filename"] = field[1]
			}
			header := textproto.MIMEHeader{"Content-Disposition": {mime.FormatMediaType("form-data", disposition)}}
			if field[2] != "" {
				header.Set("Content-Type", field[2])
			}
			p, err := w.CreatePart(header)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = p.Write([]byte(field[3]))
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return w.Boundary(), b.String()
	}
	seen := map[string]string{}
	for range redistest.Ops(20_000) {
		var fields [][4]string
		for range r.IntN(4) {
			fields = append(fields, [4]string{random(r, "ab;"), random(r, "ab/"), []string{"", "text/plain", "text/html"}[r.IntN(3)], random(r, "ab\r\n-")})
		}
		boundary, text := write(fields)
		again, repeated := write(fields)
		got := printOfForm(t, boundary, text)
		if boundary == again || got != printOfForm(t, again, repeated) {
			t.Fatalf("%q: got another fingerprint with another boundary, want the same", fields)
		}
		form := fmt.Sprintf("%q", fields)
		if other, ok := seen[got]; ok && other != form {
			t.Fatalf("%s and %s have one fingerprint, want two", other, form)
		}
		seen[got] = form
	}
}
