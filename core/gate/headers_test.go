package gate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

func local(t testing.TB, policies ...limit.Policy) *limit.Limiter {
	t.Helper()
	l, err := limit.NewLocal("test", policies, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// everyone is a key that makes one subject of all requests.
var everyone = fixed("everyone")

// lines returns the values of a field as the client would see them.
func lines(fields []gate.Field, name string) (values []string) {
	for _, f := range fields {
		switch {
		case f.Name != name:
		case f.Add:
			values = append(values, f.Value)
		default:
			values = []string{f.Value}
		}
	}
	return values
}

// single is the value of a field that must be there on one line.
func single(t *testing.T, fields []gate.Field, name string) string {
	t.Helper()
	v := lines(fields, name)
	if len(v) != 1 {
		t.Fatalf("%s is on %d lines of %+v, want one", name, len(v), fields)
	}
	return v[0]
}

// bytesOf is a policy whose permits have this unit.
func bytesOf(unit string) limit.Policy {
	return limit.FixedWindow{Name: "bytes", Limit: 65535, Window: 10 * time.Second, Unit: unit}
}

func TestHeaderForms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bucket := limit.TokenBucket{Name: "burst", Rate: 10, Per: time.Second}
		window := limit.FixedWindow{Name: "hourly", Limit: 3, Window: time.Hour}
		tokens := limit.FixedWindow{Name: "tokens", Limit: 100, Window: time.Minute, Unit: "tokens"}
		shadowed := limit.FixedWindow{Name: "shadowed", Limit: 10, Window: time.Minute, Unit: "tokens"}
		add := func(name, value string) gate.Field { return gate.Field{Name: name, Value: value, Add: true} }
		set := func(name, value string) gate.Field { return gate.Field{Name: name, Value: value} }
		for _, c := range []struct {
			headers  gate.Headers
			policies []limit.Policy
			want     []gate.Field
		}{
			{gate.HeadersIETF, []limit.Policy{bucket}, []gate.Field{
				add("Ratelimit-Policy", `"burst";q=10;w=1`), add("Ratelimit", `"burst";r=9;t=1`)}},
			{gate.HeadersIETF, []limit.Policy{bucket, window}, []gate.Field{
				add("Ratelimit-Policy", `"burst";q=10;w=1, "hourly";q=3;w=3600`), add("Ratelimit", `"hourly";r=2;t=3600`)}},
			{gate.HeadersIETF, []limit.Policy{bytesOf("requests")}, []gate.Field{
				add("Ratelimit-Policy", `"bytes";q=65535;w=10`), add("Ratelimit", `"bytes";r=65534;t=10`)}},
			{gate.HeadersIETF, []limit.Policy{bytesOf("content-bytes")}, []gate.Field{
				add("Ratelimit-Policy", `"bytes";q=65535;qu="content-bytes";w=10`), add("Ratelimit", `"bytes";r=65534;t=10`)}},
			{gate.HeadersIETF, []limit.Policy{bytesOf("tokens"), tokens, limit.Shadow(shadowed), limit.PerRequest(bucket)}, []gate.Field{
				add("Ratelimit-Policy", `"bytes";q=65535;qu="tokens";w=10, "tokens";q=100;qu="tokens";w=60, "burst";q=10;w=1`),
				add("Ratelimit", `"burst";r=9;t=1, "tokens";r=99;t=60`)}},
			{gate.HeadersIETF, []limit.Policy{limit.Shadow(tokens), limit.PerRequest(bucket)}, []gate.Field{
				add("Ratelimit-Policy", `"burst";q=10;w=1`), add("Ratelimit", `"burst";r=9;t=1`)}},
			{gate.HeadersLegacy, []limit.Policy{bucket, window}, []gate.Field{
				set("Ratelimit-Limit", "3"), set("Ratelimit-Remaining", "2"), set("Ratelimit-Reset", "3600")}},
			{gate.HeadersX, []limit.Policy{window, bucket}, []gate.Field{
				set("X-Ratelimit-Limit", "3"), set("X-Ratelimit-Remaining", "2"), set("X-Ratelimit-Reset", "3600")}},
			{gate.HeadersXEpoch, []limit.Policy{window, bucket}, []gate.Field{
				set("X-Ratelimit-Limit", "3"), set("X-Ratelimit-Remaining", "2"), set("X-Ratelimit-Reset", fmt.Sprint(time.Now().Unix()+3600))}},
			{gate.HeadersAll, []limit.Policy{limit.PerRequest(bucket), limit.Shadow(shadowed), limit.PerRequest(window), tokens}, []gate.Field{
				add("Ratelimit-Policy", `"burst";q=10;w=1, "hourly";q=3;w=3600, "tokens";q=100;qu="tokens";w=60`),
				add("Ratelimit", `"hourly";r=2;t=3600, "burst";r=9;t=1, "tokens";r=99;t=60`)}},
			{gate.HeadersNone, []limit.Policy{bucket}, nil},
		} {
			g := gate.RateLimit(local(t, c.policies...), everyone, &gate.RateLimitOptions{Headers: c.headers})
			p := g.Enter(&request{})
			if len(p.Header) != len(c.want) {
				t.Fatalf("Headers %d: got the fields %+v, want %+v", c.headers, p.Header, c.want)
			}
			for i, f := range c.want {
				if p.Header[i] != f {
					t.Errorf("Headers %d: got the fields %+v, want %+v", c.headers, p.Header[i], f)
				}
			}
			if p.Leave != nil || p.Capture != 0 || p.Reply != nil {
				t.Errorf("Headers %d: got %+v, want nothing but header fields", c.headers, p)
			}
		}
	})
}

// A bucket of 3 a second refills in fractions of a second. Everything is rounded up.
func TestHeadersRoundUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gate.RateLimit(local(t, limit.TokenBucket{Name: "b", Rate: 3, Per: time.Second, Burst: 4}), everyone, nil)
		if got := single(t, g.Enter(&request{}).Header, "Ratelimit-Policy"); got != `"b";q=4;w=2` {
			t.Errorf("a bucket that fills in 4/3 s: got %s, want \"b\";q=4;w=2", got)
		}
		time.Sleep(time.Hour)
		var p gate.Pass
		for p.Reply == nil {
			p = g.Enter(&request{})
		}
		if got := single(t, p.Reply.Header, "Ratelimit"); got != `"b";r=0;t=1` {
			t.Errorf("1/3 s before the next permit: got %s, want \"b\";r=0;t=1", got)
		}
		if got := single(t, p.Reply.Header, "Retry-After"); got != "1" {
			t.Errorf("1/3 s before the next permit: got Retry-After %s, want 1", got)
		}
		since := gate.RateLimit(local(t, limit.TokenBucket{Name: "b", Rate: 3, Per: time.Second, Burst: 4}), everyone, &gate.RateLimitOptions{Headers: gate.HeadersXEpoch})
		if got := single(t, since.Enter(&request{}).Header, "X-Ratelimit-Reset"); got != fmt.Sprint(time.Now().Unix()+1) {
			t.Errorf("1/3 s before the next permit, on the second: got Reset %s, want the next second", got)
		}
		time.Sleep(334 * time.Millisecond)
		if p := g.Enter(&request{}); p.Reply != nil {
			t.Errorf("after 1/3 s: got %+v, want the request admitted", p.Reply)
		}
	})
}

// Reset and t say when there is more, not when everything is back.
func TestResetIsWhenThereIsMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for headers, want := range map[gate.Headers][2]string{
			gate.HeadersIETF:   {"Ratelimit", `"b";r=1;t=10`},
			gate.HeadersLegacy: {"Ratelimit-Reset", "10"},
			gate.HeadersX:      {"X-Ratelimit-Reset", "10"},
			gate.HeadersAll:    {"Ratelimit", `"b";r=1;t=10`},
			gate.HeadersXEpoch: {"X-Ratelimit-Reset", fmt.Sprint(time.Now().Unix() + 10)},
		} {
			limiter := local(t, limit.TokenBucket{Name: "b", Rate: 1, Per: 10 * time.Second, Burst: 3})
			g := gate.RateLimit(limiter, everyone, &gate.RateLimitOptions{Headers: headers})
			g.Enter(&request{})
			if got := single(t, g.Enter(&request{}).Header, want[0]); got != want[1] {
				t.Errorf("%s: got %s, want %s", want[0], got, want[1])
			}
		}
	})
}

// This is the effective window of draft-ietf-httpapi-ratelimit-headers-11 section 4.1.2.
// A client that uses r at once is admitted, and can use no more within t, before t is
// rounded up to a second. After t there is more than r. A sliding window counts what was
// used at once as spread evenly when its window turns. So it may then admit another
// request a little earlier.
func TestEffectiveWindow(t *testing.T) {
	t.Parallel()
	random := redistest.Rand(t)
	policies := []func(n int64, span time.Duration) limit.Policy{
		func(n int64, span time.Duration) limit.Policy {
			return limit.TokenBucket{Name: "p", Rate: n, Per: span, Burst: n + 3}
		},
		func(n int64, span time.Duration) limit.Policy {
			return limit.FixedWindow{Name: "p", Limit: n, Window: span}
		},
		func(n int64, span time.Duration) limit.Policy {
			return limit.SlidingWindow{Name: "p", Limit: n, Window: span}
		},
		func(n int64, span time.Duration) limit.Policy {
			return limit.SlidingLog{Name: "p", Limit: n, Window: span}
		},
	}
	for i := range 400 {
		make, n, span := policies[i%len(policies)], random.Int64N(20)+1, time.Duration(random.Int64N(20_000)+1)*time.Millisecond
		pauses := []time.Duration{}
		for range random.IntN(30) + 1 {
			pauses = append(pauses, time.Duration(random.Int64N(int64(span))/4))
		}
		synctest.Test(t, func(t *testing.T) {
			spends, waits := local(t, make(n, span)), local(t, make(n, span))
			var state map[string]int64
			for _, pause := range pauses {
				time.Sleep(pause)
				for _, l := range []*limit.Limiter{spends, waits} {
					p := gate.RateLimit(l, everyone, nil).Enter(&request{})
					fields := p.Header
					if p.Reply != nil {
						fields = p.Reply.Header
					}
					state = integers(t, lines(fields, "Ratelimit"))["p"]
				}
			}
			r, window := state["r"], time.Duration(state["t"])*time.Second
			d, err := spends.TakeN(t.Context(), "everyone", 0)
			if err != nil {
				t.Fatal(err)
			}
			var exact time.Duration
			for s := range d.States() {
				exact = s.NextAfter
			}
			if exact <= window-time.Second || exact > window {
				t.Fatalf("got t=%v, and more after %v, want t to be that, rounded up to a second", window, exact)
			}
			for k := range r {
				if d, err := spends.Take(t.Context(), "everyone"); err != nil || !d.Allowed {
					t.Fatalf("permit %d of r=%d: got %+v, %v, want it granted", k+1, r, d, err)
				}
			}
			almost := max(exact-time.Millisecond, 0) // the clock of a bucket moves by milliseconds
			time.Sleep(almost)
			_, estimates := make(n, span).(limit.SlidingWindow)
			if d, err := spends.Take(t.Context(), "everyone"); err != nil || d.Allowed && !estimates {
				t.Fatalf("one more than r=%d within %v: got %+v, %v, want it denied", r, almost, d, err)
			}
			time.Sleep(window - almost)
			if d, err := waits.Peek(t.Context(), "everyone"); err != nil || d.Remaining <= r {
				t.Fatalf("after t=%v: got %d remaining, %v, want more than r=%d", window, d.Remaining, err, r)
			}
		})
	}
}

// A Structured Field can hold even the largest numbers.
func TestHeadersLargest(t *testing.T) {
	t.Parallel()
	const much = 1 << 52
	g := gate.RateLimit(local(t, limit.FixedWindow{Name: "w", Limit: much, Window: time.Hour}), everyone, nil)
	p := g.Enter(&request{})
	policy, err := httpsfv.UnmarshalList(lines(p.Header, "Ratelimit-Policy"))
	if err != nil {
		t.Fatal(err)
	}
	q, _ := policy[0].(httpsfv.Item).Params.Get("q")
	if q != int64(999_999_999_999_999) {
		t.Errorf("got q=%v, want 999999999999999", q)
	}
	if _, err := httpsfv.UnmarshalList(lines(p.Header, "Ratelimit")); err != nil {
		t.Error(err)
	}
}

// integers reads the parameters of each item of a field.
func integers(t *testing.T, values []string) map[string]map[string]int64 {
	t.Helper()
	list, err := httpsfv.UnmarshalList(values)
	if err != nil {
		t.Fatalf("%q: got the error %v, want a list of Structured Fields", values, err)
	}
	items := map[string]map[string]int64{}
	for _, member := range list {
		item := member.(httpsfv.Item)
		params := map[string]int64{}
		for _, name := range item.Params.Names() {
			v, _ := item.Params.Get(name)
			params[name] = v.(int64)
		}
		items[item.Value.(string)] = params
	}
	return items
}

// What the fields say is true, for random policies, costs and pauses.
func TestHeadersHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		random := redistest.Rand(t)
		denied := 0
		for range 300 {
			limit1, limit2, rate := random.Int64N(20)+1, random.Int64N(20)+1, random.Int64N(9)+1
			window := time.Duration(random.Int64N(20_000)+1) * time.Millisecond
			limiter := local(t,
				limit.TokenBucket{Name: "bucket", Rate: rate, Per: window, Burst: limit1},
				limit.SlidingWindow{Name: "sliding", Limit: limit2, Window: window},
				limit.SlidingLog{Name: "log", Limit: limit2 + 1, Window: window / 2 * 2})
			cost := int64(1)
			g := gate.RateLimit(limiter, everyone, &gate.RateLimitOptions{Cost: func(gate.Request) (int64, error) { return cost, nil }})
			for range 30 {
				time.Sleep(time.Duration(random.Int64N(int64(window))) / 4)
				cost = random.Int64N(min(limit1, limit2) + 1)
				before, err := limiter.TakeN(context.Background(), "everyone", 0)
				if err != nil {
					t.Fatal(err)
				}
				p := g.Enter(&request{})
				fields := p.Header
				if p.Reply != nil {
					fields = p.Reply.Header
				}
				policies, state := integers(t, lines(fields, "Ratelimit-Policy")), integers(t, lines(fields, "Ratelimit"))
				if len(policies) != 3 || len(state) != 1 {
					t.Fatalf("got %d policies and %d states, want 3 and 1", len(policies), len(state))
				}
				for s := range before.States() {
					if got := policies[s.Policy]; got["q"] != s.Limit || got["w"] < 1 || time.Duration(got["w"])*time.Second < s.Window || time.Duration(got["w"]-1)*time.Second >= s.Window {
						t.Fatalf("%s: got %v, want the limit and the window, rounded up, of %+v", s.Policy, got, s)
					}
				}
				for name, s := range state {
					if s["r"] < 0 || s["t"] < 0 || s["r"] > policies[name]["q"] {
						t.Fatalf("%s: got %v, want r from 0 to q=%d, and t not below 0", name, s, policies[name]["q"])
					}
					if p.Reply == nil {
						continue
					}
					denied++
					wait, err := strconv.ParseInt(single(t, fields, "Retry-After"), 10, 64)
					if err != nil || wait < 1 || s["t"] > wait {
						t.Fatalf("got Retry-After %d, %v, want 1 at least, and no less than t=%d", wait, err, s["t"])
					}
					time.Sleep(time.Duration(wait) * time.Second)
					if again := g.Enter(&request{}); again.Reply != nil {
						t.Fatalf("after waiting %d s: got %+v, want the request admitted", wait, again.Reply)
					}
				}
			}
		}
		if denied < 1000 {
			t.Errorf("got %d denials to look at, want 1000 at least", denied)
		}
	})
}

func TestQuotaProblem(t *testing.T) {
	t.Parallel()
	limiter := local(t,
		limit.FixedWindow{Name: "roomy", Limit: 100, Window: time.Hour},
		limit.FixedWindow{Name: "tight", Limit: 1, Window: time.Hour},
		limit.FixedWindow{Name: "tight-too", Limit: 1, Window: time.Minute})
	g := gate.RateLimit(limiter, everyone, nil)
	if p := g.Enter(&request{}); p.Reply != nil {
		t.Fatalf("the first request: got %+v, want it admitted", p.Reply)
	}
	p := g.Enter(&request{})
	if p.Reply == nil || p.Reply.Status != 429 || p.Header != nil {
		t.Fatalf("the second request: got %+v, want 429 with all fields in the reply", p)
	}
	var body map[string]any
	if err := json.Unmarshal(p.Reply.Body, &body); err != nil {
		t.Fatal(err)
	}
	if body["status"] != 429.0 || body["type"] != "https://iana.org/assignments/http-problem-types#quota-exceeded" ||
		body["title"] == nil || body["title"] == "" {
		t.Errorf("got the problem %s, want status 429, the type of an exceeded quota, and a title", p.Reply.Body)
	}
	violated, _ := json.Marshal(body["violated-policies"])
	if string(violated) != `["tight","tight-too"]` {
		t.Errorf("got the violated policies %s, want [\"tight\",\"tight-too\"]", violated)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/problem+json", "Cache-Control": "no-store", "Retry-After": "3600",
		"Ratelimit": `"tight";r=0;t=3600`,
	} {
		if got := single(t, p.Reply.Header, name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// A window of the calendar ends where t= says, and w= is its length. A month has no w=.
func TestCalendarWindowsInTheFields(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // 2000-01-01 00:00:00 UTC, a Saturday
		time.Sleep(24 * time.Hour)
		for every, want := range map[limit.Period][2]string{
			limit.Hour:  {`"p";q=3;w=3600`, `"p";r=2;t=3600`},
			limit.Day:   {`"p";q=3;w=86400`, `"p";r=2;t=86400`},
			limit.Week:  {`"p";q=3;w=604800`, `"p";r=2;t=86400`},
			limit.Month: {`"p";q=3`, `"p";r=2;t=2592000`},
		} {
			p := gate.RateLimit(local(t, limit.CalendarWindow{Name: "p", Limit: 3, Every: every}), everyone, nil).Enter(&request{})
			if got := [2]string{single(t, p.Header, "Ratelimit-Policy"), single(t, p.Header, "Ratelimit")}; got != want {
				t.Errorf("every %d: got %q, want %q", every, got, want)
			}
		}
	})
}

// A shadow policy that denies is in no field and in no body.
func TestShadowPoliciesAreNotShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		enforced := limit.FixedWindow{Name: "hourly", Limit: 3, Window: time.Hour}
		shadow := limit.Shadow(limit.FixedWindow{Name: "strict", Limit: 1, Window: time.Minute})
		for _, headers := range []gate.Headers{gate.HeadersIETF, gate.HeadersLegacy, gate.HeadersX, gate.HeadersAll, gate.HeadersXEpoch} {
			opts := &gate.RateLimitOptions{Headers: headers}
			plain := gate.RateLimit(local(t, enforced), everyone, opts)
			watched := gate.RateLimit(local(t, shadow, enforced), everyone, opts)
			for i := range 5 {
				want, got := plain.Enter(&request{}), watched.Enter(&request{})
				if fmt.Sprintf("%+v", got.Header) != fmt.Sprintf("%+v", want.Header) || (got.Reply == nil) != (want.Reply == nil) {
					t.Fatalf("%d, request %d: got %+v, want %+v as without the shadow", headers, i, got, want)
				}
				if want.Reply != nil && fmt.Sprintf("%+v", *got.Reply) != fmt.Sprintf("%+v", *want.Reply) {
					t.Errorf("%d, request %d: got %s, want %s as without the shadow",
						headers, i, got.Reply.Body, want.Reply.Body)
				}
			}
		}
		alone := gate.RateLimit(local(t, shadow), everyone, nil)
		for range 3 {
			if p := alone.Enter(&request{}); p.Reply != nil || len(p.Header) != 0 {
				t.Errorf("a shadow alone: got %+v, want neither a reply nor fields", p)
			}
		}
	})
}
