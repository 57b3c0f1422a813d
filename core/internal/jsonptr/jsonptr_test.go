package jsonptr

import (
	"errors"
	"strings"
	"testing"
)

// TestText: a pointer finds a member, or the error says why there is none.
func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pointer, text, want string
		err                 error
	}{
		{"/id", `{"id":"a"}`, "a", nil},
		{"/id", `{"id":17}`, "17", nil},
		{"/id", `{"id":true}`, "true", nil},
		{"/id", ` { "id" : "\u0061" } `, "a", nil},
		{"/a~1b/~0", `{"a/b":{"~":"x"}}`, "x", nil},
		{"/items/1/sku", `{"items":[{"sku":"a"},{"sku":"b"}]}`, "b", nil},
		{"/items/01", `{"items":["a","b"]}`, "", ErrMissing},
		{"/items/2", `{"items":["a","b"]}`, "", ErrMissing},
		{"/id", `{}`, "", ErrMissing},
		{"/id", `{"id":null}`, "", ErrMissing},
		{"/id", `{"id":""}`, "", ErrMissing},
		{"/id/x", `{"id":"a"}`, "", ErrMissing},
		{"/id", `[]`, "", ErrMissing},
		{"/id", `{"id":"a","id":"a"}`, "", ErrAmbiguous},
		{"/id", `{"id":"a","ID":"b"}`, "", ErrAmbiguous},
		{"/id", `{"Id":"a"}`, "", ErrAmbiguous},
		{"/a/id", `{"a":{"id":"x"},"A":{}}`, "", ErrAmbiguous},
		{"/id", `{"id":{}}`, "", ErrCompound},
		{"/id", `{"id":[]}`, "", ErrCompound},
		{"/id", `{"id":1.0}`, "", ErrFraction},
		{"/id", `{"id":1e2}`, "", ErrFraction},
		{"/id", `{"id":-0}`, "", ErrFraction},
		{"/id", `{"id":"a\ud800"}`, "", ErrInvalid},
		{"/id", `{"id":"\uDFFFa"}`, "", ErrInvalid},
		{"/id", `{"id":"\udc00\ud800"}`, "", ErrInvalid},
		{"/id", `{"id":"\ud83d\ud83d\ude00"}`, "", ErrInvalid},
		{"/id", `{"id":"\\\\ufffd\ud800"}`, "", ErrInvalid},
		{"/id", `{"id":"\ud800\\udc00"}`, "", ErrInvalid},
		{"/id", `{"id":"\ud83d\uDE00"}`, "\U0001f600", nil},
		{"/id", `{"id":"\ud83d\ude00\n\ud83d\ude00"}`, "\U0001f600\n\U0001f600", nil},
		{"/id", `{"id":"\ufffd\uFFFD` + "\ufffd" + `"}`, "\ufffd\ufffd\ufffd", nil},
		{"/id", `{"id":"\\ud800\\"}`, `\ud800\`, nil},
	} {
		p, err := Parse(c.pointer)
		if err != nil || p.String() != c.pointer || !Valid([]byte(c.text)) {
			t.Fatalf("Parse of %s for %s: got %v, want the pointer, and valid JSON", c.pointer, c.text, err)
		}
		if got, err := p.Text([]byte(c.text)); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s of %s: got %q, %v, want %q, %v", c.pointer, c.text, got, err, c.want, c.err)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, pointer := range []string{"", "id", "/a~", "/a~2", "~0"} {
		if p, err := Parse(pointer); err == nil {
			t.Errorf("Parse of %q: got %v, want an error", pointer, p)
		}
	}
}

func TestValid(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"{}": true, "null": true, "": false, "{": false, "{}x": false, "{\"\xff\":1}": false, `{"a":1,}`: false,
	} {
		if got := Valid([]byte(text)); got != want {
			t.Errorf("Valid of %q: got %v, want %v", text, got, want)
		}
	}
}

// FuzzText: U+FFFD must not come from anything else, because two texts would then be one.
func FuzzText(f *testing.F) {
	for _, seed := range []string{`"\ud800"`, `"\udfff\ud800"`, `"\ud83d\ude00"`, `"\ufffd"`, `"\\ufffd\ud800"`, "\"\ufffd\"", `"\\\ud83d"`} {
		f.Add([]byte(seed))
	}
	p, err := Parse("/id")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		text := append(append([]byte(`{"id":`), value...), '}')
		if !Valid(text) {
			return
		}
		got, err := p.Text(text)
		if err != nil {
			return
		}
		raw, err := p.Find(text)
		if err != nil {
			t.Fatalf("Find in %s: got %v, want what Text has found", text, err)
		}
		spelt := strings.ReplaceAll(string(raw), `\\`, "")
		written := strings.Count(spelt, "\ufffd") + strings.Count(strings.ToLower(spelt), `\ufffd`)
		if read := strings.Count(got, "\ufffd"); read != written {
			t.Errorf("%s: got %q with %d times U+FFFD, want %d", raw, got, read, written)
		}
	})
}
