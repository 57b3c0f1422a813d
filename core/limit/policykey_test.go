package limit

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

// TestPolicyOfKeyReadsWhatCompileWrites parses the ends of the keys of generated
// policies. Compiling the result makes the same rule.
func TestPolicyOfKeyReadsWhatCompileWrites(t *testing.T) {
	t.Parallel()
	rng := redistest.Rand(t)
	for range redistest.Steps(20_000) {
		k := Kinds[lua.Kinds[rng.IntN(len(lua.Kinds))]]
		name := []string{"", "", "api", "a-b.c_d", "bucket-10-1s-20", "ban-1", "kept-bucket"}[rng.IntN(7)]
		p := Set(k.Policy(rng, rng.IntN(100)), name, "Name")
		if own, err := p.prepay(Prepaid{Most: 10, Term: time.Millisecond}); err == nil && name == "" {
			p = own
		}
		if k.Kept {
			p = KeepOnChange(p)
		}
		ban := Ban{After: 1 + rng.Int64N(9), Within: time.Duration(1+rng.Int64N(90_000)) * time.Millisecond, For: time.Minute}
		if rng.IntN(2) == 0 {
			ban.Max = time.Duration(60_000+rng.Int64N(100_000)) * time.Millisecond
		}
		r, err := p.compile(false)
		if err != nil {
			continue // beyond exact arithmetic
		}
		banned, err := WithBan(p, ban).compile(false)
		if err != nil {
			t.Fatal(err)
		}
		if r.Kept != "" {
			for _, end := range []string{r.Tail, banned.Ban.Tail} {
				if _, _, err := PolicyOfKey(end); !errors.Is(err, ErrKeyNumbers) {
					t.Fatalf("%q: got %v, want ErrKeyNumbers", end, err)
				}
			}
			continue
		}
		got, none, err := PolicyOfKey(r.Tail)
		if err != nil || none != (Ban{}) {
			t.Fatalf("%#v: %q: got %+v, %v, want no ban and no error", p, r.Tail, none, err)
		}
		sameRule(t, r, got)
		got, of, err := PolicyOfKey(banned.Ban.Tail)
		if err != nil {
			t.Fatalf("%#v: %q: got %v, want no error", p, banned.Ban.Tail, err)
		}
		sameRule(t, banned, WithBan(got, of))
	}
}

// sameRule checks that a policy's rule decides the same, and in the same key.
func sameRule(t *testing.T, want *kind.Rule, p Policy) {
	t.Helper()
	got := must(p.compile(false))(t)
	a, b := got.Terms, want.Terms
	if (a.Ban == nil) != (b.Ban == nil) || a.Ban != nil && *a.Ban != *b.Ban {
		t.Errorf("PolicyOfKey: got the ban %+v, want %+v", a.Ban, b.Ban)
	}
	a.Ban, b.Ban = nil, nil
	if a != b || *got.Facts != *want.Facts {
		t.Errorf("PolicyOfKey: got the rule %+v, %+v, want %+v, %+v", a, *got.Facts, b, *want.Facts)
	}
	if !got.Moves && !slices.Equal(got.Numbers(), want.Numbers()) {
		t.Errorf("the rule that PolicyOfKey found: got the numbers %v, want %v", got.Numbers(), want.Numbers())
	}
}

func TestPolicyOfKeyRefusesWhatIsNoPolicy(t *testing.T) {
	t.Parallel()
	for _, end := range []string{
		"", "!", "settled:abc", "bucket-10-1s", "bucket-10-1s-x", "bucket-10-1s-99999999999999999999", "bucket-10-1s-20-30", "bucket-0-1s-20", "bucket-10-1000ms-20", "bucket-10-1s-20-debt-0",
		"bucket-010-1s-20", "window-5-1h-20", "window-99999999999999999999-1h", "window-5-1d", "sliding-5-1m-debt-2", "calendar-5-day-Nowhere",
		"calendar-5-day-Local", "calendar-5-year-UTC", "calendar-5-day-", "calendar-5-day", "calendar-5-1h-UTC", "calendar-5-day-..etc", "a!b!window-5-1h", "a b!window-5-1h", "a!bucket-10-1s-20!ban-5",
		"window-5-1h!ban-0-1m-1m-1m", "window-5-1h!ban-1-1m-1m-1s", "window-5-1h!ban-1-1m-1m-1m-1m", "window-5-1h!ban-1-60s-1m-1m", "30s", "kept-bucket", "window-5-1h\x1b[2J",
	} {
		if p, b, err := PolicyOfKey(end); !errors.Is(err, errKeyPolicy) || p != nil || b != (Ban{}) {
			t.Errorf("%q: got %#v, %+v, %v, want errKeyPolicy", end, p, b, err)
		}
	}
}
