package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// deadRedis answers every command with an error that names a key.
type deadRedis struct{ err error }

func (d deadRedis) Process(ctx context.Context, cmd redis.Cmder) error {
	err := d.err
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	cmd.SetErr(err)
	return err
}

type noPerm string

func (e noPerm) Error() string { return string(e) }
func (e noPerm) RedisError()   {}

var errNoPerm = noPerm("NOPERM secret-key-name is not for you")

func dead(t *testing.T) *limit.Limiter {
	t.Helper()
	l, err := limit.New(deadRedis{errNoPerm}, "test", []limit.Policy{limit.FixedWindow{Name: "w", Limit: 3, Window: time.Hour}}, &limit.Options{Budget: time.Minute, Fail: store.FailClosed})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// hourly admits n requests an hour.
func hourly(t testing.TB, n int64) *limit.Limiter {
	return local(t, limit.FixedWindow{Name: "hourly", Limit: n, Window: time.Hour})
}

// hook collects what OnError is told.
type hook struct {
	mu   sync.Mutex
	errs []error
}

func (h *hook) hear(_ gate.Request, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs = append(h.errs, err)
}

func (h *hook) take() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := errors.Join(h.errs...)
	h.errs = nil
	return err
}

func status(p gate.Pass) int {
	if p.Reply == nil {
		return 200
	}
	return p.Reply.Status
}

func title(t *testing.T, p gate.Pass) string {
	t.Helper()
	var body struct {
		Title  string
		Status int
	}
	if p.Reply == nil {
		return ""
	}
	if err := json.Unmarshal(p.Reply.Body, &body); err != nil || body.Status != p.Reply.Status {
		t.Errorf("got the body %s, %v, want JSON with the status %d", p.Reply.Body, err, p.Reply.Status)
	}
	return body.Title
}

func TestRateLimitAnswers(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom secret-key-name")
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	late, stop := context.WithDeadline(context.Background(), time.Now().Add(-time.Hour))
	t.Cleanup(stop)
	key := gate.ByHeader("X-Api-Key")
	cost := func(n int64, err error) *gate.RateLimitOptions {
		return &gate.RateLimitOptions{Cost: func(gate.Request) (int64, error) { return n, err }}
	}
	plan := func(err error) *gate.RateLimitOptions {
		return &gate.RateLimitOptions{Policies: func(gate.Request) ([]limit.Policy, error) { return nil, err }}
	}
	ok := with("X-Api-Key", "k")
	three := hourly(t, 3)
	for _, c := range []struct {
		name    string
		limiter *limit.Limiter
		key     gate.Key
		opts    *gate.RateLimitOptions
		r       *request
		status  int
		title   string
		hook    error // nil: not told
	}{
		{"admitted", three, key, nil, ok, 200, "", nil},
		{"missing", three, key, nil, &request{}, 400, "The request lacks the header field X-Api-Key", nil},
		{"doubled", three, key, nil, with("X-Api-Key", "a", "b"), 400, "The request has more than one header field X-Api-Key", nil},
		{"longest", three, key, nil, with("X-Api-Key", strings.Repeat("a", 1024-len("header:x-api-key="))), 200, "", nil},
		{"too long", three, key, nil, with("X-Api-Key", strings.Repeat("a", 1025-len("header:x-api-key="))), 400, "The key of the request is too long", nil},
		{"too long, of one's own", three, fixed(strings.Repeat("a", 1025)), nil, ok, 400, "The key of the request is too long", nil},
		{"refused as said", three, failing(gate.Refuse(418, `A "teapot" & <pot>`)), nil, ok, 418, `A "teapot" & <pot>`, nil},
		{"refused, wrapped", three, failing(errors.Join(boom, gate.Refuse(403, "No"))), nil, ok, 403, "No", nil},
		{"missing, of one's own", three, failing(gate.ErrMissing), nil, ok, 400, "The request does not say whom it is for", nil},
		{"missing, as said", three, failing(errors.Join(gate.ErrMissing, gate.Refuse(401, "Sign in"))), nil, ok, 401, "Sign in", nil},
		{"a refusal that is none", three, failing(gate.Refuse(302, "secret-key-name")), nil, ok, 500, "Internal Server Error", errAny},
		{"a refusal beyond 499", three, failing(gate.Refuse(500, "secret-key-name")), nil, ok, 500, "Internal Server Error", errAny},
		{"the key fails", three, failing(boom), nil, ok, 500, "Internal Server Error", boom},
		{"an empty key", three, fixed(""), nil, ok, 500, "Internal Server Error", gate.ErrWiring},
		{"no route", three, gate.ByRoute(), nil, ok, 500, "Internal Server Error", gate.ErrWiring},
		{"the body is gone", three, gate.ByForm("a", nil), nil, &request{bodyErr: gate.ErrBodyConsumed}, 500, "Internal Server Error", gate.ErrBodyConsumed},
		{"too large a body", three, gate.ByForm("a", nil), nil, &request{bodyErr: gate.ErrBodyTooLarge}, 413, "The body of the request is too large", nil},
		{"no user", three, gate.ByValue("user", "user"), nil, ok, 401, "The request is not authenticated", nil},
		{"costs nothing", three, key, cost(0, nil), ok, 200, "", nil},
		{"costs all", hourly(t, 3), key, cost(3, nil), ok, 200, "", nil},
		{"costs more than all", hourly(t, 3), key, cost(4, nil), ok, 400, "The cost of the request is not one that can be granted", nil},
		{"a negative cost", hourly(t, 3), key, cost(-1, nil), ok, 400, "The cost of the request is not one that can be granted", nil},
		{"a refused cost", three, key, cost(1, gate.Refuse(422, "n is no number")), ok, 422, "n is no number", nil},
		{"a cost of too large a body", three, key, cost(1, errors.Join(boom, gate.ErrBodyTooLarge)), ok, 413, "The body of the request is too large", nil},
		{"a cost of a broken body", three, key, cost(1, gate.ErrBodyBroken), ok, 400, "The body of the request could not be read", nil},
		{"a cost that fails", three, key, cost(1, boom), ok, 500, "Internal Server Error", boom},
		{"an unknown plan", three, key, plan(gate.Refuse(402, "Pay first")), ok, 402, "Pay first", nil},
		{"a plan that fails", three, key, plan(boom), ok, 500, "Internal Server Error", boom},
		{"no plan", three, key, plan(nil), ok, 200, "", nil},
		{"Redis is down", dead(t), key, nil, ok, 503, "Service Unavailable", script.ErrConfiguration},
		{"the client went away", dead(t), key, nil, &request{ctx: gone, header: ok.header}, 503, "Service Unavailable", nil},
		{"the deadline passed", dead(t), key, nil, &request{ctx: late, header: ok.header}, 503, "Service Unavailable", context.DeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var h hook
			opts := gate.RateLimitOptions{}
			if c.opts != nil {
				opts = *c.opts
			}
			opts.OnError = h.hear
			p := gate.RateLimit(c.limiter, c.key, &opts).Enter(c.r)
			if status(p) != c.status || title(t, p) != c.title {
				t.Errorf("got %d %q, want %d %q", status(p), title(t, p), c.status, c.title)
			}
			told := h.take()
			if c.hook == nil && told != nil || c.hook == errAny && told == nil || c.hook != nil && c.hook != errAny && !errors.Is(told, c.hook) {
				t.Errorf("the hook was told %v, want %v", told, c.hook)
			}
			if p.Reply == nil {
				return
			}
			if p.Header != nil || p.Leave != nil {
				t.Errorf("got %+v, want a refusal with only a reply, and neither fields nor Leave", p)
			}
			if single(t, p.Reply.Header, "Cache-Control") != "no-store" || single(t, p.Reply.Header, "Content-Type") != "application/problem+json" {
				t.Errorf("got the fields %+v, "+
					"want Cache-Control: no-store and Content-Type: application/problem+json", p.Reply.Header)
			}
			if got := strings.Join(lines(p.Reply.Header, "Retry-After"), ","); got != map[int]string{503: "1"}[c.status] {
				t.Errorf("got Retry-After %q, want 1 with a 503 and none otherwise", got)
			}
			if strings.Contains(string(p.Reply.Body), "secret-key-name") {
				t.Errorf("the client reads %s, want nothing of the error's text", p.Reply.Body)
			}
			if p := gate.RateLimit(c.limiter, c.key, c.opts).Enter(c.r); status(p) != c.status {
				t.Errorf("without a hook: got %d, want %d", status(p), c.status)
			}
		})
	}
}

// errAny stands for any error.
var errAny = errors.New("any error")

func TestRateLimitCounts(t *testing.T) {
	t.Parallel()
	g := gate.RateLimit(hourly(t, 3), gate.ByHeader("X-Api-Key"), nil)
	for i, want := range []int{200, 200, 200, 429, 429} {
		if got := status(g.Enter(with("X-Api-Key", "a"))); got != want {
			t.Errorf("request %d: got %d, want %d", i, got, want)
		}
	}
	for _, r := range []*request{{}, with("X-Api-Key", "a", "a")} {
		if got := status(g.Enter(r)); got != 400 {
			t.Errorf("a bad request: got %d, want 400", got)
		}
	}
	if got := status(g.Enter(with("X-Api-Key", "b"))); got != 200 {
		t.Errorf("another key: got %d, want 200", got)
	}
}

func TestRateLimitConcurrently(t *testing.T) {
	t.Parallel()
	g := gate.RateLimit(hourly(t, 100), everyone, nil)
	var admitted, denied atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 50 {
				switch status(g.Enter(&request{})) {
				case 200:
					admitted.Add(1)
				case 429:
					denied.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if admitted.Load() != 100 || denied.Load() != 700 {
		t.Errorf("got %d admitted and %d denied, want 100 and 700", admitted.Load(), denied.Load())
	}
}

func TestRateLimitSkip(t *testing.T) {
	t.Parallel()
	g := gate.RateLimit(dead(t), failing(errors.New("boom")), &gate.RateLimitOptions{
		Skip: func(r gate.Request) bool { return r.Path() == "/healthz" },
	})
	if p := g.Enter(&request{path: "/healthz"}); p.Reply != nil || p.Header != nil {
		t.Errorf("a skipped request: got %+v, want neither a reply nor fields", p)
	}
	if got := status(g.Enter(&request{path: "/"})); got != 500 {
		t.Errorf("another path: got %d, want 500", got)
	}
}

func TestRateLimitCostAndPolicies(t *testing.T) {
	t.Parallel()
	plain := hourly(t, 2)
	g := gate.RateLimit(plain, everyone, &gate.RateLimitOptions{
		Policies: func(r gate.Request) ([]limit.Policy, error) {
			if r.Value("plan") == "gold" {
				return []limit.Policy{limit.FixedWindow{Name: "gold", Limit: 10, Window: time.Hour}}, nil
			}
			return nil, nil
		},
		Cost: func(r gate.Request) (int64, error) {
			n, _ := r.Value("n").(int64)
			return n, nil
		},
	})
	enter := func(plan string, n int64) gate.Pass {
		return g.Enter(&request{values: map[any]any{"plan": plan, "n": n}})
	}
	for i, c := range []struct {
		plan string
		n    int64
		want int
	}{
		{"", 2, 200}, {"", 1, 429}, {"gold", 6, 200}, {"gold", 5, 429}, {"gold", 4, 200}, {"gold", 1, 429}, {"gold", 11, 400}, {"", 3, 400}, {"", 0, 200},
	} {
		if got := status(enter(c.plan, c.n)); got != c.want {
			t.Errorf("%d: %q at %d: got %d, want %d", i, c.plan, c.n, got, c.want)
		}
	}
	p := enter("gold", 1)
	if got := single(t, p.Reply.Header, "Ratelimit-Policy"); got != `"gold";q=10;w=3600` {
		t.Errorf("got the policy %s, want \"gold\";q=10;w=3600", got)
	}
	if got := plain.Stats(); got.Allowed != 4 || got.Denied != 4 {
		t.Errorf("the Stats of the gate's limiter: got %d allowed and %d denied, want all 4 and 4", got.Allowed, got.Denied)
	}
}

// The numbers of a plan come with the request. Plans with equal numbers share what was
// used.
func TestRateLimitPolicies(t *testing.T) {
	t.Parallel()
	unknown := errors.New("the plan is not known")
	var h hook
	g := gate.RateLimit(hourly(t, 1), everyone, &gate.RateLimitOptions{
		Policies: func(r gate.Request) ([]limit.Policy, error) {
			switch n := r.Value("plan").(type) {
			case int:
				return []limit.Policy{limit.FixedWindow{Name: "plan", Limit: int64(n), Window: time.Hour}}, nil
			case error:
				return nil, n
			}
			return nil, nil
		},
		OnError: h.hear,
	})
	for i, c := range []struct {
		plan any
		want int
	}{
		{2, 200}, {2, 200}, {2, 429}, {3, 200}, {2, 429}, {nil, 200}, {nil, 429}, {3, 200}, {3, 200}, {3, 429},
		{gate.Refuse(402, "Pay first"), 402}, {unknown, 500}, {0, 500},
	} {
		if got := status(g.Enter(&request{values: map[any]any{"plan": c.plan}})); got != c.want {
			t.Errorf("%d: the plan %v: got %d, want %d", i, c.plan, got, c.want)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.errs) != 2 || !errors.Is(h.errs[0], unknown) || !errors.Is(h.errs[1], gate.ErrWiring) || !strings.Contains(h.errs[1].Error(), "Limit is 0") {
		t.Errorf("the hook was told of %v, want of the unknown plan, and of Limit as wrong wiring", h.errs)
	}
}

func TestRateLimitPanics(t *testing.T) {
	t.Parallel()
	l := hourly(t, 1)
	opts := &gate.RateLimitOptions{Headers: gate.HeadersXEpoch + 1}
	for name, wire := range map[string]func(){
		"no limiter":      func() { gate.RateLimit(nil, everyone, nil) },
		"no key":          func() { gate.RateLimit(l, nil, nil) },
		"unknown headers": func() { gate.RateLimit(l, everyone, opts) },
	} {
		if v, ok := panics(t, wire).(string); !ok || !strings.HasPrefix(v, "gate.RateLimit: ") {
			t.Errorf("%s: got the panic %v, want one that begins with gate.RateLimit", name, v)
		}
	}
	for name, opts := range map[string]*gate.RateLimitOptions{
		"Skip":     {Skip: func(gate.Request) bool { panic("mine") }},
		"Cost":     {Cost: func(gate.Request) (int64, error) { panic("mine") }},
		"Policies": {Policies: func(gate.Request) ([]limit.Policy, error) { panic("mine") }},
	} {
		if v := panics(t, func() { gate.RateLimit(l, everyone, opts).Enter(&request{}) }); v != "mine" {
			t.Errorf("%s: got the panic %v, want mine", name, v)
		}
	}
}

func TestRateLimitCopiesItsOptions(t *testing.T) {
	t.Parallel()
	opts := &gate.RateLimitOptions{}
	g := gate.RateLimit(hourly(t, 1), everyone, opts)
	opts.Skip = func(gate.Request) bool { return true }
	opts.Headers = gate.HeadersNone
	if p := g.Enter(&request{}); len(p.Header) != 2 {
		t.Errorf("got %+v, want the two fields of the options as they were", p)
	}
}

// Two limits in a chain both report their state, also if the inner one denies.
func TestRateLimitsInAChain(t *testing.T) {
	t.Parallel()
	g := gate.Chain(
		gate.RateLimit(hourly(t, 9), everyone, nil),
		gate.RateLimit(local(t, limit.FixedWindow{Name: "route", Limit: 1, Window: time.Minute}), gate.ByPath(), nil))
	want := []string{`"hourly";q=9;w=3600`, `"route";q=1;w=60`}
	if got := lines(g.Enter(&request{path: "/a"}).Header, "Ratelimit-Policy"); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("admitted: got the policies %q, want %q", got, want)
	}
	p := g.Enter(&request{path: "/a"})
	if got := lines(p.Reply.Header, "Ratelimit-Policy"); status(p) != 429 || strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("denied: got %d with the policies %q, want 429 with %q", status(p), got, want)
	}
	if got := single(t, p.Reply.Header, "Retry-After"); got != "60" {
		t.Errorf("got Retry-After %s, want 60", got)
	}
}

func BenchmarkRateLimit(b *testing.B) {
	g := gate.RateLimit(hourly(b, 1<<40), everyone, nil)
	r := &request{}
	b.ReportAllocs()
	for b.Loop() {
		g.Enter(r)
	}
}

// An admitted request allocates only the text and the slice of its fields.
func TestRateLimitAllocations(t *testing.T) {
	l := hourly(t, 1<<40)
	g := gate.RateLimit(l, everyone, nil)
	r := &request{}
	limiter := testing.AllocsPerRun(200, func() { _, _ = l.Take(r.Context(), "everyone") })
	whole := testing.AllocsPerRun(200, func() { g.Enter(r) })
	if whole > limiter+2 {
		t.Errorf("got %v allocations, want the limiter's %v and 2 more at most", whole, limiter)
	}
}
