package gate

import (
	"errors"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
)

func withKey(lines ...string) *incoming {
	return &incoming{header: map[string][]string{"Idempotency-Key": lines}}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 255)
	for _, c := range []struct {
		line, want string
		err        error
	}{
		{`"8e03978e-40d5-43e8-bc93-6894a57f9324"`, "8e03978e-40d5-43e8-bc93-6894a57f9324", nil},
		{`8e03978e-40d5-43e8-bc93-6894a57f9324`, "8e03978e-40d5-43e8-bc93-6894a57f9324", nil},
		{" \t\"abc\" \t", "abc", nil},
		{" \tabc \t", "abc", nil},
		{`"a\"b\\c"`, `a"b\c`, nil},
		{`" a, b;c "`, " a, b;c ", nil},
		{`" "`, " ", nil},
		{`a b`, "a b", nil},
		{`a\b`, `a\b`, nil},
		{`a;b=c`, "a;b=c", nil},
		{`:YWJj:`, ":YWJj:", nil},
		{`!~`, "!~", nil},
		{`"` + long + `"`, long, nil},
		{`"` + strings.Repeat(`\\`, 255) + `"`, strings.Repeat(`\`, 255), nil},
		{long, long, nil},

		{`"abc";a`, "abc", nil},
		{`"abc"; a; *b=?0`, "abc", nil},
		{`"abc";a=1;b=-1.5;c="d, \" ;";d=e/f:g;e=:YWJj:;f=@1;g=%"%c3%bc"  `, "abc", nil},

		{"", "", errKeyEmpty},
		{" \t", "", errKeyEmpty},
		{`""`, "", errKeyEmpty},
		{`"";a=1`, "", errKeyEmpty},
		{`"x` + long + `"`, "", errKeyLong},
		{"x" + long, "", errKeyLong},
		{`"a", "b"`, "", errKeyList},
		{`"a" , "b"`, "", errKeyList},
		{`"a";b, "c"`, "", errKeyList},
		{`a, b`, "", errKeyList},
		{`a,`, "", errKeyList},
		{`,`, "", errKeyList},
		{`"`, "", errKeyQuotes},
		{`"abc`, "", errKeyQuotes},
		{`"abc\`, "", errKeyQuotes},
		{`"abc\"`, "", errKeyQuotes},
		{`"a\bc"`, "", errKeyQuotes},
		{`abc"`, "", errKeyQuotes},
		{`a"b"`, "", errKeyQuotes},
		{`%"abc"`, "", errKeyQuotes},
		{`"a""b"`, "", errKeyQuotes},
		{`"a"b`, "", errKeyQuotes},
		{`"a" ;b`, "", errKeyQuotes},
		{`"a";`, "", errKeyQuotes},
		{`"a";B`, "", errKeyQuotes},
		{`"a";b=`, "", errKeyQuotes},
		{`"a";b=1.`, "", errKeyQuotes},
		{`"a";b="c`, "", errKeyQuotes},
		{`"a";b=1234567890123456`, "", errKeyQuotes},
		{"a\x00b", "", errKeyBytes},
		{"\"a\tb\"", "", errKeyBytes},
		{"a\nb", "", errKeyBytes},
		{"a\x7f", "", errKeyBytes},
		{"caf\xc3\xa9", "", errKeyBytes},
		{"\"a\xff\"", "", errKeyBytes},
		{"\"a\";b=\"\xc3\xa9\"", "", errKeyBytes},
	} {
		got, err := idempotencyKey(withKey(c.line))
		if got != c.want || err != c.err {
			t.Errorf("%q: got %q, %v, want %q, %v", c.line, got, err, c.want, c.err)
		}
	}
}

// Two lines may name two operations. That holds even if they are equal.
func TestIdempotencyKeyOnTwoLines(t *testing.T) {
	t.Parallel()
	for _, lines := range [][]string{{"a", "b"}, {"a", "a"}, {`"a"`, "a"}, {"a", ""}, {"", "a"}, {"", ""}, {"a", "b", "c"}} {
		if got, err := idempotencyKey(withKey(lines...)); got != "" || err != errKeyTwice {
			t.Errorf("%q: got %q, %v, want no key and %v", lines, got, err, errKeyTwice)
		}
	}
}

// Only a request without the field may pass as one that wants no guard.
func TestIdempotencyKeyMissing(t *testing.T) {
	t.Parallel()
	if _, err := idempotencyKey(&incoming{}); !errors.Is(err, ErrMissing) {
		t.Errorf("no line: got %v, want %v", err, ErrMissing)
	}
	for _, err := range []error{errKeyTwice, errKeyList, errKeyQuotes, errKeyEmpty, errKeyLong, errKeyBytes} {
		if errors.Is(err, ErrMissing) {
			t.Errorf("%v is also %v, want it told apart from a key that is missing", err, ErrMissing)
		}
	}
	for _, err := range []error{errKeyAbsent, errKeyTwice, errKeyList, errKeyQuotes, errKeyEmpty, errKeyLong, errKeyBytes} {
		r, ok := asRefusal(err)
		if !ok || r.status != 400 || !strings.Contains(r.title, "Idempotency-Key") || !strings.Contains(r.title, "; send ") {
			t.Errorf("got the refusal %v, want a 400 that names the field and the remedy", err)
		}
	}
}

// If a parser of Structured Fields reads a String, that is the key. Anything else that
// begins with a quote is refused.
func FuzzIdempotencyKey(f *testing.F) {
	for _, s := range []string{
		"", "abc", `"abc"`, `"a\"b\\c"`, `"a`, `a"`, `"a\b"`, `"a", "b"`, "a, b", `"a";b;c=1`, `"a";b="c;d"`, `"a";b=c:/`,
		`"a";b=?1;c=@-1;d=1.123;e=%"%c3%bc";f=:YQ==:`, `"a";b=`, "\"a\";b=\x80", "\ta ", "\xff", "a\x00", `""`, `" "`,
		`"` + strings.Repeat("x", 256) + `"`, strings.Repeat("x", 256), `"a";b=-`, `"a";b=1.1234`, `"a";*=*`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, err := idempotencyKey(withKey(line))
		value := strings.Trim(line, " \t")
		item, broken := httpsfv.UnmarshalItem([]string{value})
		want, isString := item.Value.(string)
		quoted := strings.HasPrefix(value, `"`)
		switch {
		case broken == nil && isString && want != "" && len(want) <= 255:
			if err != nil || got != want {
				t.Fatalf("%q is %q, %v; want %q", line, got, err, want)
			}
		case broken == nil && isString && err == nil:
			t.Fatalf("%q of %d characters passes, want a refusal", got, len(want))
		case quoted && err == nil && !strings.ContainsAny(value, ":%"): // in parameters they begin what is not decoded
			t.Fatalf("%q is %q; want a refusal as by %v", line, got, broken)
		case err == nil && !quoted && (got != value || strings.ContainsAny(got, `",`)):
			t.Fatalf("%q is %q, want the bare value or a refusal", line, got)
		}
		if err != nil {
			if _, ok := asRefusal(err); !ok || got != "" {
				t.Fatalf("%q: got %q, %v, want a refusal and no key", line, got, err)
			}
			return
		}
		if len(got) < 1 || len(got) > 255 || strings.IndexFunc(got, func(c rune) bool { return c < ' ' || c > '~' }) >= 0 {
			t.Fatalf("%q passes, want 1 to 255 printable characters", got)
		}
		again, err := httpsfv.Marshal(httpsfv.NewItem(got))
		if err != nil {
			t.Fatal(err)
		}
		if same, err := idempotencyKey(withKey(again)); err != nil || same != got {
			t.Fatalf("%q is %q, %v, want %q as it is when bare", again, same, err, got)
		}
	})
}
