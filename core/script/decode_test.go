package script_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

type seat struct {
	Row   uint8
	Price float64
}

type booking struct {
	Granted bool
	Left    int
	Retry   time.Duration `script:"ms"`
	Name    string
	Mark    []byte
	Seats   []seat
	Note    *string
	Extra   any
	Waits   []time.Duration `script:"us"`
	cached  bool
	Local   int `script:"-"`
}

// TestDecodeTakesWhatServersSend has each server send what Decode reads.
func TestDecodeTakesWhatServersSend(t *testing.T) {
	t.Parallel()
	s := script.New("book.lua", `
return {true, 3, 1500, 'ann', 'x', {{7, '12.5'}, {'8', 9}}, 'near', 1, {20, 0}}`)
	near := "near"
	want := booking{Granted: true, Left: 3, Retry: 1500 * time.Millisecond, Name: "ann", Mark: []byte("x"),
		Seats: []seat{{7, 12.5}, {8, 9}}, Note: &near, Extra: int64(1), Waits: []time.Duration{20 * time.Microsecond, 0},
		cached: true, Local: 9}
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		r := newRunner(t, rdb, &script.Options{Budget: 5 * time.Second})
		reply, err := r.Run(t.Context(), s, []string{prefix})
		if err != nil {
			t.Fatal(err)
		}
		got := booking{cached: true, Local: 9}
		if err := s.Decode(reply, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, want)
		}
	})
}

func TestDecodeRefusesOtherShapes(t *testing.T) {
	t.Parallel()
	s := script.New("book.lua", "return 1")
	for name, c := range map[string]struct {
		reply, dst any
		class      error
		says       string
	}{
		"too few":           {[]any{int64(1)}, &seat{}, script.ErrFailed, "1 elements and script_test.seat 2 fields"},
		"too many":          {[]any{int64(1), "2", "3"}, &seat{}, script.ErrFailed, "3 elements"},
		"no array":          {int64(1), &seat{}, script.ErrFailed, "the reply is an integer"},
		"nil":               {nil, new(int), script.ErrFailed, "the reply is nil"},
		"too large":         {[]any{int64(256), "2"}, &seat{}, script.ErrFailed, "field Row"},
		"negative":          {[]any{int64(-1), "2"}, &seat{}, script.ErrFailed, "field Row"},
		"text for a number": {[]any{int64(1), "secret"}, &seat{}, script.ErrFailed, "field Price is a string"},
		"exponent":          {"1e+15", new(int64), script.ErrFailed, "the reply is a string"},
		"two for a bool":    {int64(2), new(bool), script.ErrFailed, "does not fit a bool"},
		"a nested error":    {[]any{errors.New("secret"), "2"}, &seat{}, script.ErrFailed, "is an error"},
		"inside a slice":    {[]any{"1", "x"}, new([]int), script.ErrFailed, "reply[1]"},
		"number for text":   {int64(1), new(string), script.ErrFailed, "does not fit a string"},
		"long duration": {[]any{int64(math.MaxInt64)}, &struct {
			For time.Duration `script:"s"`
		}{}, script.ErrFailed, "field For"},
		"no unit":       {[]any{int64(1)}, &struct{ For time.Duration }{}, script.ErrConfiguration, "say its unit"},
		"no pointer":    {int64(1), seat{}, script.ErrConfiguration, "pass a pointer"},
		"a nil pointer": {int64(1), (*seat)(nil), script.ErrConfiguration, "pass a pointer"},
		"a nil":         {int64(1), nil, script.ErrConfiguration, "pass a pointer"},
		"a map":         {[]any{}, &map[string]int{}, script.ErrConfiguration, "cannot go to a map"},
		"a method":      {"x", new(error), script.ErrConfiguration, "cannot go to a error"},
	} {
		err := s.Decode(c.reply, c.dst)
		var failure *script.Error
		if !errors.As(err, &failure) || !errors.Is(err, c.class) || failure.Script != "book.lua" ||
			!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %v of book.lua, with %q and without the secret", name, err, c.class, c.says)
		}
	}
}

func TestDecodeTakesNil(t *testing.T) {
	t.Parallel()
	s := script.New("nil.lua", "return nil")
	text := "old"
	note, granted, extra := &text, true, any("old")
	for _, dst := range []any{&note, &granted, &extra} {
		if err := s.Decode(nil, dst); err != nil {
			t.Errorf("nil into a %T: got %v, want no error", dst, err)
		}
	}
	if note != nil || granted || extra != nil {
		t.Errorf("after nil: got %v, %v and %v, want nil, false and nil", note, granted, extra)
	}
}
