package limit

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

func TestParsePolicy(t *testing.T) {
	t.Parallel()
	shanghai := Zone("Asia/Shanghai")
	for text, want := range map[string]Policy{
		"bucket 10/1s":          TokenBucket{Rate: 10, Per: time.Second},
		"bucket 10/1s burst 20": TokenBucket{Rate: 10, Per: time.Second, Burst: 20},
		" bucket\t10/1m30s  debt 5 burst 20 name a unit tokens": TokenBucket{Name: "a", Rate: 10, Per: 90 * time.Second, Burst: 20, MaxDebt: 5, Unit: "tokens"},
		"window 1000/1h debt 7 unit b name n":                   FixedWindow{Name: "n", Limit: 1000, Window: time.Hour, MaxDebt: 7, Unit: "b"},
		"sliding 100/1m name s unit b":                          SlidingWindow{Name: "s", Limit: 100, Window: time.Minute, Unit: "b"},
		"log 100/1.5ms name l unit b":                           SlidingLog{Name: "l", Limit: 100, Window: 1500 * time.Microsecond, Unit: "b"},
		"calendar 1/hour":                                       CalendarWindow{Limit: 1, Every: Hour},
		"calendar 1/day in UTC":                                 CalendarWindow{Limit: 1, Every: Day, Location: time.UTC},
		"calendar 1/week in Asia/Shanghai debt 2":               CalendarWindow{Limit: 1, Every: Week, Location: shanghai, MaxDebt: 2},
		"calendar 1/month name m unit b":                        CalendarWindow{Name: "m", Limit: 1, Every: Month, Unit: "b"},
		"window 5/1h kept name kept":                            KeepOnChange(FixedWindow{Name: "kept", Limit: 5, Window: time.Hour}),
		"window 5/1h lease 1m":                                  WithLease(FixedWindow{Limit: 5, Window: time.Hour}, time.Minute),
		"window 5/1h per-request":                               PerRequest(FixedWindow{Limit: 5, Window: time.Hour}),
		"window 5/1h shadow":                                    Shadow(FixedWindow{Limit: 5, Window: time.Hour}),
		"window 5/1h ban 3/1m for 10m":                          WithBan(FixedWindow{Limit: 5, Window: time.Hour}, Ban{After: 3, Within: time.Minute, For: 10 * time.Minute}),
		"log 5/1h ban 3/1m for 10m max 1h shadow per-request": Shadow(PerRequest(WithBan(SlidingLog{Limit: 5, Window: time.Hour},
			Ban{After: 3, Within: time.Minute, For: 10 * time.Minute, Max: time.Hour}))),
		"window 5/1h shadow lease 30s kept ban 3/1m for 10m name all": KeepOnChange(Shadow(WithLease(WithBan(FixedWindow{Name: "all", Limit: 5, Window: time.Hour},
			Ban{After: 3, Within: time.Minute, For: 10 * time.Minute}), 30*time.Second))),
	} {
		if got, err := ParsePolicy(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %#v, %v, want %#v", text, got, err, want)
		}
	}
}

// TestFaultsOfText: the error says what is wrong, and what would be right.
func TestFaultsOfText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"":                                  {"empty", "bucket 10/1s burst 20"},
		"bukket 10/1s":                      {`"bukket" is no kind`, "bucket, window, sliding, log or calendar"},
		"Bucket 10/1s":                      {`"Bucket" is no kind`, "bucket"},
		"bucket":                            {"ends too early", "bucket 10/1s"},
		"bucket 10":                         {`"10" is no limit`, "bucket 10/1s"},
		"calendar":                          {"ends too early", "calendar 10/day"},
		"calendar 10":                       {`"10" is no limit`, "calendar 10/day"},
		"bucket ten/1s":                     {`"ten" is no whole number`, "100"},
		"bucket 1.5/1s":                     {`"1.5" is no whole number`, "100"},
		"bucket 99999999999999999999/1s":    {`"99999999999999999999" is too large`, "smaller"},
		"bucket 10/s":                       {`"s" is no time`, "1s"},
		"bucket 10/1":                       {`"1" is no time`, "1s"},
		"bucket 10/":                        {`"" is no time`, "1s"},
		"bucket 10/1d":                      {`"1d" is no time`, "24h"},
		"calendar 10/year":                  {`"year" is no period`, "hour, day, week or month"},
		"calendar 10/24h":                   {`"24h" is no period`, "day"},
		"calendar 10/day in":                {"ends too early", "in Asia/Shanghai"},
		"calendar 10/day in Nowhere":        {`"Nowhere" is no time zone`, "Asia/Shanghai"},
		"calendar 10/day in Local":          {`Location is "Local"`, "UTC"},
		"window 10/1h burst 5":              {`"burst" is no term of a window`, "debt, name, unit, kept, lease, ban, per-request, shadow"},
		"log 10/1h debt 5":                  {`"debt" is no term of a log`, "name"},
		"window 10/1h in UTC":               {`"in" is no term of a window`, "debt"},
		"bucket 10/1s 20":                   {`"20" is no term of a bucket`, "burst"},
		"bucket 10/1s burst":                {"ends too early", "burst 20"},
		"bucket 10/1s burst 20 burst 30":    {`"burst" stands twice`, "leave out"},
		"bucket 10/1s shadow kept shadow":   {`"shadow" stands twice`, "leave out"},
		"window 10/1h name":                 {"ends too early", "name daily"},
		"window 10/1h name a!b":             {`Name is "a!b"`, "letters"},
		"window 10/1h unit a,b":             {`Unit is "a,b"`, "letters"},
		"window 10/1h kept":                 {"Name is empty", "needs a Name"},
		"window 10/1h lease":                {"ends too early", "lease 1m"},
		"window 10/1h lease 1ms":            {"lease", "use"},
		"sliding 10/1h lease 1m":            {"does not suit", "FixedWindow"},
		"window 10/1h lease 1m per-request": {"PerRequest is not settled", "leave out"},
		"window 10/1h ban":                  {"ends too early", "ban 5/1m for 10m max 1h"},
		"window 10/1h ban 5":                {`"" is no time`, "1m"},
		"window 10/1h ban 5/1m":             {"does not say how long", "for 10m"},
		"window 10/1h ban 5/1m for":         {"ends too early", "for 10m"},
		"window 10/1h ban 5/1m for 10m max": {"ends too early", "max 1h"},
		"window 10/1h ban 0/1m for 10m":     {"After is 0", ""},
		"window 0/1h":                       {"Limit is 0", ""},
		"bucket 0/0s burst -1":              {"Burst is -1", "Rate is 0"},
		"bucket 10/1s name " + strings.Repeat("a", 65): {"Name is", "1 to 64"},
	} {
		p, err := ParsePolicy(text)
		if p != nil || err == nil || !strings.HasPrefix(err.Error(), "limit.ParsePolicy: ") {
			t.Errorf("%q: got %#v, %v, want an error", text, p, err)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: got %v, want an error that says %q", text, err, part)
			}
		}
	}
}

// randomTerms puts a policy into terms, at random.
func randomTerms(rng *rand.Rand, p Policy) Policy {
	for rng.IntN(3) > 0 {
		switch rng.IntN(5) {
		case 0:
			p = KeepOnChange(p)
		case 1:
			p = WithLease(p, time.Duration(1+rng.IntN(100))*time.Second)
		case 2:
			p = PerRequest(p)
		case 3:
			p = Shadow(p)
		default:
			p = WithBan(p, Ban{After: 1 + rng.Int64N(9), Within: time.Duration(1+rng.Int64N(90_000)) * time.Millisecond, For: time.Minute, Max: time.Duration(rng.IntN(2)) * time.Hour})
		}
	}
	return p
}

// TestTextIsReadAsWritten writes generated policies and reads them.
func TestTextIsReadAsWritten(t *testing.T) {
	t.Parallel()
	rng := redistest.Rand(t)
	written := 0
	for range redistest.Steps(20_000) {
		k := Kinds[lua.Kinds[rng.IntN(len(lua.Kinds))]]
		p := Set(k.Policy(rng, rng.IntN(100)), []string{"", "api", "kept", "a-b.c_d"}[rng.IntN(4)], "Name")
		p = Set(p, []string{"", "tokens", UnitContentBytes}[rng.IntN(3)], "Unit")
		pointer := reflect.New(reflect.TypeOf(p))
		pointer.Elem().Set(reflect.ValueOf(p))
		if k.Kept {
			p = KeepOnChange(p)
		}
		p = randomTerms(rng, p)
		text, err := Policies{p}.MarshalText()
		if _, fault := checked(p); (err == nil) != (fault == nil) {
			t.Fatalf("%#v: got %s, %v, want an error if, and only if, New has one: %v", p, text, err, fault)
		}
		if err != nil {
			continue
		}
		written++
		if got, err := ParsePolicy(string(text)); err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("%s: got %#v, %v, want %#v", text, got, err, p)
		}
		of, _ := p.(termed)
		p = pointer.Interface().(Policy)
		if of.Policy != nil {
			p = termed{p, of.terms}
		}
		if got := (Policies{p}).String(); got != string(text) {
			t.Fatalf("%s as a pointer: got %s, want the same", text, got)
		}
	}
	if written < redistest.Steps(20_000)/10 {
		t.Errorf("%d policies were written, want more", written)
	}
}

// ownPolicy is a type of a caller.
type ownPolicy struct{ FixedWindow }

func TestPoliciesAsText(t *testing.T) {
	t.Parallel()
	want := Policies{TokenBucket{Rate: 10, Per: time.Second, Burst: 20}, KeepOnChange(FixedWindow{Name: "daily", Limit: 1000, Window: 24 * time.Hour})}
	const line = "bucket 10/1s burst 20; window 1000/24h name daily kept"
	for _, text := range []string{
		line, "bucket 10/1s burst 20\nwindow 1000/24h name daily kept\n", ";;\n" + line + " ; \r\n\r\n",
		"# limits\nbucket 10/1s burst 20# a second; not this\n  ;window 1000/24h name daily kept#",
	} {
		var got Policies
		if err := got.UnmarshalText([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
	if text, err := want.MarshalText(); string(text) != line || err != nil || want.String() != line {
		t.Errorf("got %s, %v, want %s", text, err, line)
	}
	none := Policies{TokenBucket{Rate: 1, Per: time.Hour}}
	if err := none.UnmarshalText([]byte(" \n#\n;")); err != nil || len(none) != 0 {
		t.Errorf("no policy: got %v, %v, want an empty list", none, err)
	}

	kept := Policies{TokenBucket{Rate: 1, Per: time.Hour}}
	err := kept.UnmarshalText([]byte("bukket 1/1s; window 1/1h\nwindow 0/0s"))
	for _, part := range []string{`policies[0], "bukket 1/1s": "bukket" is no kind`, `policies[2], "window 0/0s": Limit is 0`, `policies[2], "window 0/0s": Window is 0s`} {
		if err == nil || !strings.Contains(err.Error(), part) || kept.String() != "bucket 1/1h" {
			t.Errorf("got %v, %v, want an error that says %q, and the list as it was", kept, err, part)
		}
	}

	bad := Policies{nil, ownPolicy{FixedWindow{Limit: 1, Window: time.Hour}}, FixedWindow{}, Shadow(ownPolicy{FixedWindow{Name: "own", Limit: 1, Window: time.Hour}})}
	text, err := bad.MarshalText()
	for _, part := range []string{"policies[0]: it is nil", "policies[1]: limit.ownPolicy is not of this package", "policies[2]: Limit is 0", "policies[3]: limit.ownPolicy"} {
		if err == nil || !strings.Contains(err.Error(), part) || text != nil {
			t.Errorf("got %s, %v, want an error that says %q", text, err, part)
		}
	}
	if got := bad.String(); got != "nil; window-1-1h; window 0/0s; own" {
		t.Errorf("got %s, want a name for each that has no text", got)
	}
	if err := (*Policies)(nil).UnmarshalText([]byte("window 1/1h")); !errors.Is(err, errNilPolicies) {
		t.Errorf("a nil list: got %v, want errNilPolicies", err)
	}
}

func TestPoliciesInConfiguration(t *testing.T) {
	t.Parallel()
	want := Policies{FixedWindow{Limit: 1, Window: time.Second}, SlidingLog{Limit: 2, Window: time.Minute}}
	var config struct {
		Limits Policies            `json:"limits"`
		Plans  map[string]Policies `json:"plans"`
	}
	for _, text := range []string{
		`{"limits":["window 1/1s","log 2/1m"],"plans":{"free":"window 1/1s","paid":["log 2/1m"]}}`,
		`{"limits":"window 1/1s\nlog 2/1m","plans":{"free":["window 1/1s"],"paid":"log 2/1m"}}`,
	} {
		config.Limits, config.Plans = nil, nil
		if err := json.Unmarshal([]byte(text), &config); err != nil || !reflect.DeepEqual(config.Limits, want) ||
			!reflect.DeepEqual(config.Plans, map[string]Policies{"free": want[:1], "paid": want[1:]}) {
			t.Errorf("%s: got %+v, %v, want %v", text, config, err, want)
		}
	}
	again, err := json.Marshal(config)
	if const1 := `{"limits":"window 1/1s; log 2/1m","plans":{"free":"window 1/1s","paid":"log 2/1m"}}`; err != nil || string(again) != const1 {
		t.Errorf("got %s, %v, want %s", again, err, const1)
	}
	for text, part := range map[string]string{
		`{"limits":7}`: "a list of texts", `{"limits":[7]}`: "a list of texts", `{"limits":["window 1/1s","bukket"]}`: `policies[1], "bukket"`,
		`{"limits":["window 1/1s; log 2/1m"]}`: `is no time`, `{"limits":[""]}`: "empty", `{"limits":{}}`: "a list of texts",
	} {
		config.Limits = want
		if err := json.Unmarshal([]byte(text), &config); err == nil || !strings.Contains(err.Error(), part) || !reflect.DeepEqual(config.Limits, want) {
			t.Errorf("%s: got %v, %v, want an error that says %q, and the list as it was", text, config.Limits, err, part)
		}
	}
	if err := json.Unmarshal([]byte(`{"limits":null}`), &config); err != nil || !reflect.DeepEqual(config.Limits, want) {
		t.Errorf("null: got %v, %v, want the list as it was", config.Limits, err)
	}

	var limits Policies
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.TextVar(&limits, "limits", want, "")
	if !reflect.DeepEqual(limits, want) || flags.Lookup("limits").DefValue != "window 1/1s; log 2/1m" {
		t.Errorf("got the default %v, %q, want %v", limits, flags.Lookup("limits").DefValue, want)
	}
	if err := flags.Parse([]string{"-limits", "bucket 5/1s"}); err != nil || limits.String() != "bucket 5/1s" {
		t.Errorf("got %v, %v, want what the flag says", limits, err)
	}
	if err := flags.Parse([]string{"-limits", "bukket"}); err == nil || !strings.Contains(err.Error(), "bukket") {
		t.Errorf("got %v, want an error that names the fault", err)
	}
}

// TestKeysOfPolicy are those that a limiter has.
func TestKeysOfPolicy(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"bucket 10/1s": {"bucket-10-1s-10", ""},
		"window 5/1h name login shadow per-request":      {"login!window-5-1h", ""},
		"window 5/1h name daily kept unit tokens":        {"daily!kept-window-1h", ""},
		"calendar 5/day ban 3/1m for 10m":                {"calendar-5-day-UTC", "calendar-5-day-UTC!ban-3-1m-10m-10m"},
		"window 5/1h name a kept ban 3/1m for 1m max 1h": {"a!kept-window-1h", "a!kept-window-1h!ban-3-1m-1m-1h"},
	} {
		p, err := ParsePolicy(text)
		end, ban, fault := KeysOfPolicy(p)
		if err != nil || fault != nil || end != want[0] || ban != want[1] {
			t.Errorf("%s: got %q, %q, %v, want %q", text, end, ban, errors.Join(err, fault), want)
		}
	}
	for _, p := range []Policy{nil, (*FixedWindow)(nil), FixedWindow{}, FixedWindow{Name: "a b", Limit: 1, Window: time.Hour}} {
		if end, ban, err := KeysOfPolicy(p); err == nil || end != "" || ban != "" {
			t.Errorf("%#v: got %q, %q, %v, want an error", p, end, ban, err)
		}
	}
}

// FuzzParsePolicy: what is read is written so that it is read the same, and New takes it.
func FuzzParsePolicy(f *testing.F) {
	for _, seed := range []string{
		"bucket 10/1s burst 20 debt 5 name a unit tokens", "window 1000/1h lease 1m", "sliding 100/1m shadow", "log 100/1.5ms per-request",
		"calendar 100/day in Asia/Shanghai kept name kept", "window 5/1h ban 5/1m for 10m max 1h", "calendar 1/month in Etc/GMT+5", "bucket 1/1h burst +07", "bukket",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePolicy(text)
		if err != nil {
			if p != nil || !strings.HasPrefix(err.Error(), "limit.ParsePolicy: ") {
				t.Fatalf("%q: got %v, %v, want no policy and an error of ParsePolicy", text, p, err)
			}
			return
		}
		if _, err := NewLocal("fuzz", []Policy{p}, nil); err != nil {
			t.Fatalf("%q: NewLocal says %v, want it taken", text, err)
		}
		written, err := Policies{p}.MarshalText()
		if err != nil {
			t.Fatalf("%q: got %v, want a text", text, err)
		}
		var again Policies
		if err := again.UnmarshalText(written); err != nil || !reflect.DeepEqual(again, Policies{p}) {
			t.Fatalf("%q: %s was read as %#v, %v, want %#v", text, written, again, err, p)
		}
	})
}
