package jcs

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/neap-go/neap/internal/redistest"
)

// TestSamples are those of RFC 8785 section 3.2.2 and 3.2.3, and edges of its rules.
func TestSamples(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{
  "numbers": [333333333.33333329, 1E30, 4.50,
              2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}`: `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		`{
  "\u20ac": "Euro Sign",
  "\r": "Carriage Return",
  "\ufb33": "Hebrew Letter Dalet With Dagesh",
  "1": "One",
  "\ud83d\ude00": "Emoji: Grinning Face",
  "\u0080": "Control",
  "\u00f6": "Latin Small Letter O With Diaeresis"
}`: `{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign",` +
			`"😀":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`,

		`null`: `null`, ` true `: `true`, "\n\t\rfalse": `false`, ` "a" `: `"a"`, `""`: `""`, ` 7 `: `7`,
		`{}`: `{}`, ` [ ] `: `[]`, `[[],{}, [ {} ]]`: `[[],{},[{}]]`, `{ "" : { } }`: `{"":{}}`,
		`{"b":[{"d":1,"c":2}],"a":{"z":{"y":3,"x":4}}}`: `{"a":{"z":{"x":4,"y":3}},"b":[{"c":2,"d":1}]}`,
		`{"aa":1,"a":2,"":3,"A":4}`:                     `{"":3,"A":4,"a":2,"aa":1}`,
		`"\b\t\n\f\r\"\\\/\u0008\u001F\u007f"`:          `"\b\t\n\f\r\"\\/\b\u001f` + "\x7f" + `"`,
		`"\u2028\u003c` + "\u2029" + `<&>"`:             `"` + "\u2028<\u2029" + `<&>"`,
		`"\\u0041"`:                                     `"\\u0041"`,
		`{"\\":1,"\"":2}`:                               `{"\"":2,"\\":1}`,
		`"` + "\ufffd" + `\ufffd"`:                      `"` + "\ufffd\ufffd" + `"`,
	} {
		if got, err := Canonical([]byte(text)); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
}

// TestNumbers are the samples of RFC 8785 appendix B.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0",
		0x8000000000000000: "0",
		0x0000000000000001: "5e-324",
		0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308",
		0xffefffffffffffff: "-1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992",
		0xc340000000000000: "-9007199254740992",
		0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22",
		0x44b52d02c7e14af6: "1e+23",
		0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000",
		0x444b1ae4d6e2ef4f: "999999999999999900000",
		0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7",
		0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332",
		0x41b3de4355555554: "333333333.33333325",
		0x41b3de4355555555: "333333333.3333333",
		0x41b3de4355555556: "333333333.3333334",
		0x41b3de4355555557: "333333333.33333343",
		0xbecbf647612f3696: "-0.0000033333333333333333",
		0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		f := math.Float64frombits(bits)
		for _, text := range []string{strconv.FormatFloat(f, 'e', -1, 64), strconv.FormatFloat(f, 'f', -1, 64), strconv.FormatFloat(f, 'E', -1, 64), want} {
			if got, err := Canonical([]byte(text)); err != nil || string(got) != want {
				t.Errorf("%016x as %s: got %s, %v, want %s", bits, text, got, err, want)
			}
		}
	}
}

// TestSpellings: numbers that are spelled in another way.
func TestSpellings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"-0": "0", "-0.0e-0": "0", "0e99999999999999999999": "0", "1.0": "1", "10e-1": "1", "1E+2": "100", "0.10": "0.1", "1e21": "1e+21", "123456789012345678e3": "",
		"1e0000000000000000000000000000001": "10", "1000000000000000000000": "1e+21", "100e-8": "0.000001", "1e-7": "1e-7",
		"0." + strings.Repeat("0", 400) + "1e401": "1", "1" + strings.Repeat("0", 400) + "e-400": "1",
		"9007199254740991": "9007199254740991", "9007199254740992": "9007199254740992", "9007199254740993": "", "9007199254740993.0": "", "9007199254740994": "9007199254740994",
		"295147905179352825856": "", "295147905179352830000": "295147905179352830000",
		"0.10000000000000001": "0.1", "0.100000000000000005": "", "1.0000000000000000": "1", "3.141592653589793238462643383279": "",
		"1e308": "1e+308", "1.7976931348623159e308": "", "1e309": "", "-1e400": "", "1e-400": "", "-1e-99999999999999999999": "", "5e-324": "5e-324", "2e-324": "",
	} {
		got, err := Canonical([]byte(text))
		if want == "" {
			if got != nil || !errors.Is(err, ErrNumber) {
				t.Errorf("%.40s: got %s, %v, want ErrNumber", text, got, err)
			}
		} else if err != nil || string(got) != want {
			t.Errorf("%.40s: got %s, %v, want %s", text, got, err, want)
		}
	}
}

func TestTextsWithoutACanonicalForm(t *testing.T) {
	t.Parallel()
	nested := func(n int) string { return strings.Repeat(`[{"a":`, n/2) + "1" + strings.Repeat("}]", n/2) }
	for text, want := range map[string]error{
		"": ErrInvalid, " ": ErrInvalid, "{": ErrInvalid, "{}x": ErrInvalid, `{"a":1,}`: ErrInvalid, "[1 2]": ErrInvalid, "'a'": ErrInvalid, "NaN": ErrInvalid,
		"Infinity": ErrInvalid, "+1": ErrInvalid, "01": ErrInvalid, "1.": ErrInvalid, ".1": ErrInvalid, "0x10": ErrInvalid, "1_0": ErrInvalid, "nul": ErrInvalid, "\"\n\"": ErrInvalid,
		"\ufeff{}": ErrInvalid, "\"\xff\"": ErrInvalid, "{\"\xc0\x80\":1}": ErrInvalid, "\"\xed\xa0\x80\"": ErrInvalid, "{\"a\":1\u00a0}": ErrInvalid,
		`"\ud800"`: ErrInvalid, `"\ude00\ud83d"`: ErrInvalid, `{"\udfff":1}`: ErrInvalid, `["\ud800\u0041"]`: ErrInvalid,
		`{"a":1,"a":1}`: ErrTwice, `{"a":1,"b":2,"\u0061":3}`: ErrTwice, `[{"x":{"":1,"":2}}]`: ErrTwice, `{"a":{"b":1},"c":2,"a":3}`: ErrTwice,
		nested(maxDepth): nil, nested(maxDepth + 2): ErrDepth, strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1): ErrDepth,
		strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20): ErrInvalid,
	} {
		if got, err := Canonical([]byte(text)); !errors.Is(err, want) || (got != nil) != (want == nil) {
			t.Errorf("%.60q: got %.60s, %v, want %v", text, got, err, want)
		}
	}
}

// TestHostileSizes: what is large in one way or the other takes no longer than its size.
func TestHostileSizes(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 100_000 {
		many.WriteString(`,"` + strconv.Itoa(100_000-i) + `":0`)
	}
	deep := strings.Repeat(`{"b":1,"a":`, maxDepth-1)
	for name, text := range map[string]string{
		"members in reverse": "{" + many.String()[1:] + "}",
		"a deep one":         deep + `"` + strings.Repeat("a", 1<<20) + `"` + strings.Repeat("}", maxDepth-1),
		"large numbers":      "[" + strings.Repeat("1e20,", 200_000) + "0]",
		"digits":             "0." + strings.Repeat("0", 1<<20),
		"backslashes":        `"` + strings.Repeat(`\\`, 1<<19) + `"`,
	} {
		began := time.Now()
		got, err := Canonical([]byte(text))
		if took := time.Since(began); err != nil || len(got) > 6*len(text) || took > 30*time.Second {
			t.Errorf("%s of %d bytes: got %d bytes, %v, after %v, want at most six times as many within a moment", name, len(text), len(got), err, took)
		}
	}
}

// TestOrderOfNames compares with the order of code units that RFC 8785 section 3.2.3 demands.
func TestOrderOfNames(t *testing.T) {
	t.Parallel()
	rng := redistest.Rand(t)
	letters := []rune("a\u007f\u0080\ud7ff\ue000\uffff\U00010000\U00010001\U0001f600\U0010ffff")
	name := func() string {
		r := make([]rune, rng.IntN(4))
		for i := range r {
			r[i] = letters[rng.IntN(len(letters))]
		}
		return string(r)
	}
	for range redistest.Ops(20_000) {
		a, b := name(), name()
		if got, want := compare(a, b), slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b))); got != want {
			t.Fatalf("%q and %q: got %d, want %d", a, b, got, want)
		}
	}
}

// spell writes a value with its members in any order, with spaces, and with escapes.
func spell(rng *rand.Rand, v any) string {
	space := func() string { return strings.Repeat([]string{" ", "\n", "\t", "\r"}[rng.IntN(4)], rng.IntN(2)) }
	switch v := v.(type) {
	case map[string]any:
		parts := make([]string, 0, len(v))
		for name, of := range v {
			parts = append(parts, space()+spell(rng, name)+space()+":"+spell(rng, of))
		}
		rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		return space() + "{" + strings.Join(parts, ",") + space() + "}" + space()
	case []any:
		parts := make([]string, len(v))
		for i, of := range v {
			parts[i] = spell(rng, of)
		}
		return space() + "[" + strings.Join(parts, ",") + space() + "]" + space()
	case string:
		var b strings.Builder
		for _, unit := range utf16.Encode([]rune(v)) {
			b.WriteString(`\u` + strconv.FormatUint(0x10000|uint64(unit), 16)[1:])
		}
		if plain, err := json.Marshal(v); rng.IntN(2) == 0 && err == nil {
			return string(plain)
		}
		return `"` + b.String() + `"`
	case float64:
		return strconv.FormatFloat(v, []byte("eE")[rng.IntN(2)], -1, 64)
	}
	plain, _ := json.Marshal(v) // true, false or null
	return string(plain)
}

// FuzzCanonical: the canonical form means what the text means, is its own canonical form, and does not
// depend on how the text is spelled.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{
		`{"b":[1.50,"\u00e9",{"d":null,"c":true}],"a":-1e-7}`, `{"\ud83d\ude00":1,"\ufb33":2}`, `[1e21,100000,0.1,-0]`, `{"a":1,"a":2}`, `"\ud800"`, "[[[[]]]]", "9007199254740993",
	} {
		f.Add([]byte(seed), uint64(1))
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		form, err := Canonical(text)
		if err != nil {
			return
		}
		var want, got any
		if err := errors.Join(json.Unmarshal(text, &want), json.Unmarshal(form, &got)); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: got %q, which means %v, %v, want %v", text, form, got, err, want)
		}
		if again, err := Canonical(form); err != nil || !bytes.Equal(again, form) {
			t.Fatalf("%q: got %q, %v, want itself", form, again, err)
		}
		other := spell(rand.New(rand.NewPCG(seed, 1)), want)
		if again, err := Canonical([]byte(other)); err != nil || !bytes.Equal(again, form) {
			t.Fatalf("%q: got %q, %v, want %q as of %q", other, again, err, form, text)
		}
	})
}
