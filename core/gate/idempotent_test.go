package gate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// guards makes a guard on a Redis that becomes unreachable on demand.
func guards(t testing.TB, opts idempotency.Options) (*idempotency.Guard, *severed) {
	t.Helper()
	return guardsOf(t, idempotency.Retry{}, opts)
}

func guardsOf(t testing.TB, policy idempotency.Policy, opts idempotency.Options) (*idempotency.Guard, *severed) {
	t.Helper()
	s := severable(t)
	if opts.Budget == 0 {
		opts.Budget = 5 * time.Second
	}
	g, err := idempotency.New(s, "test", policy, &opts)
	if err != nil {
		t.Fatal(err)
	}
	return g, s
}

// posting is a POST with a key and a body.
func posting(key, body string) *request {
	r := with("Idempotency-Key", key)
	r.method, r.path, r.body = "POST", "/orders", body
	return r
}

// ordered is the guard's key for everyone's request with the key k.
var ordered = gate.IdempotencyScope("everyone", "POST", "/orders", "k")

// booked is an answer that is stored.
func booked(body string) *gate.Reply {
	return &gate.Reply{Status: 201, Header: []gate.Field{{Name: "Location", Value: "/orders/1"}}, Body: []byte(body)}
}

// replays fails the test unless a request gets this stored answer.
func replays(t *testing.T, g gate.Gate, r gate.Request, status int, body string) {
	t.Helper()
	p := g.Enter(r)
	if p.Reply == nil || p.Reply.Status != status || string(p.Reply.Body) != body ||
		single(t, p.Reply.Header, "Idempotent-Replayed") != "true" {
		t.Errorf("got %+v, want %d %q again", p.Reply, status, body)
	}
}

func TestIdempotentPass(t *testing.T) {
	t.Parallel()
	guard, _ := guards(t, idempotency.Options{})
	ctx, goAway := context.WithCancel(context.WithValue(context.Background(), userKey(1), "alice"))
	g := gate.Idempotent(guard, everyone, &gate.IdempotentOptions{MaxResponse: 10})
	r := posting("k", "tea")
	r.ctx = ctx
	p := g.Enter(r)
	if p.Reply != nil || p.Capture != 10 || p.Header != nil || r.bodyMax != 1<<20 {
		t.Fatalf("got %+v, having read up to %d bytes, want a pass that captures 10 bytes, having read up to %d",
			p, r.bodyMax, 1<<20)
	}
	claim, ok := idempotency.FromContext(p.Context)
	if !ok || claim.Key() != ordered || p.Context.Value(userKey(1)) != "alice" {
		t.Fatalf("the handler's context: got the claim %v, %v, want one of %q, and the request's values",
			claim, ok, ordered)
	}
	goAway()
	if p.Context.Err() != nil || claim.Err() != nil {
		t.Error("the claim ended with the client, want it to last")
	}
	p.Leave(booked("tea for two"[:10]))
	p.Leave(answered(500)) // which changes nothing
	if !errors.Is(context.Cause(p.Context), idempotency.ErrConcluded) {
		t.Errorf("after Leave: the context has the cause %v, want %v",
			context.Cause(p.Context), idempotency.ErrConcluded)
	}
	replays(t, g, posting(`"k"`, "tea"), 201, "tea for tw")
	if got := gate.Idempotent(guard, everyone, nil).Enter(posting("other", "")).Capture; got != 256<<10 {
		t.Errorf("by default it captures %d bytes, want %d", got, 256<<10)
	}
}

func TestIdempotentAnswers(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom secret-key-name")
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	late, expire := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer expire()
	guard, _ := guards(t, idempotency.Options{})
	refused, severed := guards(t, idempotency.Options{})
	severed.gone.Store(true)
	const missing, invalid, unavailable = "key-missing", "key-invalid", "not-begun"
	own := func(key gate.Key) *gate.IdempotentOptions { return &gate.IdempotentOptions{Key: key} }
	fields := func(keys ...gate.Key) *gate.IdempotentOptions { return &gate.IdempotentOptions{Fields: keys} }
	for name, c := range map[string]struct {
		guard     *idempotency.Guard
		principal gate.Key
		opts      *gate.IdempotentOptions
		r         *request
		status    int
		kind      string
		hook      error // nil: not told
	}{
		"alone":                   {guard, everyone, nil, posting("k1", ""), 200, "", nil},
		"missing":                 {guard, everyone, nil, &request{method: "POST"}, 400, missing, nil},
		"doubled":                 {guard, everyone, nil, &request{method: "POST", header: map[string][]string{"Idempotency-Key": {"k", "k"}}}, 400, invalid, nil},
		"another method":          {refused, everyone, nil, &request{method: "PUT"}, 200, "", nil},
		"its own key is missing":  {guard, everyone, own(gate.ByHeader("X-Order")), &request{method: "PUT"}, 400, missing, nil},
		"its own key is too long": {guard, everyone, own(fixed(strings.Repeat("x", 1025))), &request{method: "PUT"}, 400, invalid, nil},
		"its own key refuses":     {guard, everyone, own(failing(gate.Refuse(451, "No"))), posting("k", ""), 451, "", nil},
		"its own key fails":       {guard, everyone, own(failing(boom)), posting("k", ""), 500, "", boom},
		"its own key is empty":    {guard, everyone, own(fixed("")), posting("k", ""), 500, "", gate.ErrWiring},
		"no principal":            {guard, gate.ByHeader("X-Api-Key"), nil, posting("k", ""), 401, "", nil},
		"no value":                {guard, gate.ByValue("user", "user"), nil, posting("k", ""), 401, "", nil},
		"a forbidden principal":   {guard, failing(errors.Join(gate.ErrMissing, gate.Refuse(403, "No"))), nil, posting("k", ""), 403, "", nil},
		"the principal fails":     {guard, failing(boom), nil, posting("k", ""), 500, "", boom},
		"a field fails":           {guard, everyone, fields(gate.ByHeader("X-A"), failing(boom)), posting("k", ""), 500, "", boom},
		"a field refuses":         {guard, everyone, fields(failing(gate.Refuse(415, "No"))), posting("k", ""), 415, "", nil},
		"too large":               {refused, everyone, &gate.IdempotentOptions{MaxBody: 2}, posting("k", "tea"), 413, "", nil},
		"broken":                  {refused, everyone, nil, &request{method: "POST", header: posting("k", "").header, bodyErr: gate.ErrBodyBroken}, 400, "", nil},
		"consumed":                {refused, everyone, nil, &request{method: "POST", header: posting("k", "").header, bodyErr: gate.ErrBodyConsumed}, 500, "", gate.ErrBodyConsumed},
		"Redis is down":           {refused, everyone, nil, posting("k", ""), 503, unavailable, script.ErrConfiguration},
		"the client went away":    {guard, everyone, nil, &request{method: "POST", ctx: gone, header: posting("k", "").header}, 503, unavailable, nil},
		"no time is left":         {guard, everyone, nil, &request{method: "POST", ctx: late, header: posting("k", "").header}, 503, unavailable, context.DeadlineExceeded},
	} {
		for _, wait := range []time.Duration{0, 10 * time.Second} {
			var h hook
			opts := gate.IdempotentOptions{}
			if c.opts != nil {
				opts = *c.opts
			}
			opts.Wait, opts.OnError = wait, h.hear
			p := gate.Idempotent(c.guard, c.principal, &opts).Enter(c.r)
			if status(p) != c.status {
				t.Errorf("%s, wait %v: got %d, want %d", name, wait, status(p), c.status)
			}
			if told := h.take(); (told == nil) != (c.hook == nil) || c.hook != nil && !errors.Is(told, c.hook) {
				t.Errorf("%s, wait %v: the hook was told %v, want %v", name, wait, told, c.hook)
			}
			if p.Reply == nil {
				if p.Leave != nil {
					p.Leave(nil)
				}
				continue
			}
			if body := string(p.Reply.Body); strings.Contains(body, "secret-key-name") ||
				strings.Contains(body, `"type":"`+gate.TypeIdempotency+c.kind+`"`) != (c.kind != "") {
				t.Errorf("%s, wait %v: the client reads %s, want the type %q and nothing of the error's text",
					name, wait, body, c.kind)
			}
		}
	}
	if n := refused.Stats().Begun; n != 0 {
		t.Errorf("got %d begun without Redis, want 0", n)
	}
}

// If the stored result is not an answer, the request was done all the same.
func TestIdempotentUnreadable(t *testing.T) {
	t.Parallel()
	guard, _ := guards(t, idempotency.Options{})
	fn := func(context.Context) ([]byte, error) { return []byte("a message of a queue"), nil }
	if _, err := guard.Do(t.Context(), ordered, fn); err != nil {
		t.Fatal(err)
	}
	var h hook
	g := gate.Idempotent(guard, everyone, &gate.IdempotentOptions{OnError: h.hear, Fields: []gate.Key{everyone}})
	p := g.Enter(posting("k", ""))
	if err := h.take(); status(p) != 409 || !strings.Contains(string(p.Reply.Body), gate.TypeIdempotency+"already-done") ||
		!errors.Is(err, idempotency.ErrUnreadable) || errors.Is(err, idempotency.ErrInDoubt) {
		t.Errorf("got %+v, and the hook told %v, want 409 already-done and %v",
			p.Reply, err, idempotency.ErrUnreadable)
	}
}

// If Replay panics, the claim is left behind and the outcome is unknown.
func TestIdempotentReplayPanics(t *testing.T) {
	t.Parallel()
	guard, _ := guardsOf(t, idempotency.Reject{}, idempotency.Options{})
	g := gate.Idempotent(guard, everyone, &gate.IdempotentOptions{Replay: func(*gate.Reply) bool { panic("mine") }})
	p := g.Enter(posting("k", ""))
	panics(t, func() { p.Leave(booked("tea")) })
	if r, err := guard.Inspect(t.Context(), ordered); r.State != idempotency.Doubtful || err != nil {
		t.Errorf("got %+v, %v, want the state %v", r, err, idempotency.Doubtful)
	}
}

// Replay is not asked about a connection that was taken over, because there is no answer.
func TestIdempotentTakenOver(t *testing.T) {
	t.Parallel()
	guard, _ := guards(t, idempotency.Options{})
	p := gate.Idempotent(guard, everyone, &gate.IdempotentOptions{Replay: func(r *gate.Reply) bool {
		t.Errorf("Replay was asked about %+v, want it not asked", r)
		return false
	}}).Enter(posting("k", ""))
	p.Leave(&gate.Reply{Partial: true})
	if r, err := guard.Inspect(t.Context(), ordered); r.State != idempotency.NoResult || err != nil {
		t.Errorf("got %+v, %v, want the state %v", r, err, idempotency.NoResult)
	}
}

// A handler that returns without an answer at a deadline, or when its claim is lost, has not
// answered, and nothing is stored. Any other answer is stored, however late it is.
func TestIdempotentGivenUp(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string) *gate.Reply { return &gate.Reply{Status: status, Body: []byte(body)} }
	keep := &gate.IdempotentOptions{Replay: func(*gate.Reply) bool { return true }}
	for name, c := range map[string]struct {
		answer *gate.Reply
		opts   *gate.IdempotentOptions
		ends   error // the handler's context, before the handler returns
		want   idempotency.State
	}{
		"empty and late":       {answer(200, ""), nil, context.DeadlineExceeded, idempotency.Doubtful},
		"empty, late and kept": {answer(200, ""), keep, context.DeadlineExceeded, idempotency.Doubtful},
		"empty and in time":    {answer(200, ""), nil, nil, idempotency.Done},
		"late, and has a body": {answer(200, "tea"), nil, context.DeadlineExceeded, idempotency.Done},
		"late, and says so":    {answer(204, ""), nil, context.DeadlineExceeded, idempotency.Done},
		"empty and lost":       {answer(200, ""), nil, idempotency.ErrLost, idempotency.Doubtful},
		"lost, and has a body": {answer(200, "tea"), nil, idempotency.ErrLost, idempotency.Done},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lease, given := time.Minute, time.Hour
			switch c.ends {
			case idempotency.ErrLost:
				lease = 6 * time.Second
			case context.DeadlineExceeded:
				given = 10 * time.Second
			}
			guard, severed := guardsOf(t, idempotency.Reject{}, idempotency.Options{Lease: lease})
			r := posting("k", "")
			ctx, cancel := context.WithTimeout(t.Context(), given)
			defer cancel()
			r.ctx = ctx
			p := gate.Idempotent(guard, everyone, c.opts).Enter(r)
			if p.Context == nil {
				t.Fatalf("got %+v, want it admitted", p.Reply)
			}
			if c.ends != nil {
				severed.gone.Store(c.ends == idempotency.ErrLost)
				<-p.Context.Done()
				severed.gone.Store(false)
			}
			if cause := context.Cause(p.Context); !errors.Is(cause, c.ends) {
				t.Errorf("the handler's context: got the cause %v, want %v", cause, c.ends)
			}
			p.Leave(c.answer)
			if got, err := guard.Inspect(t.Context(), ordered); err != nil || got.State != c.want {
				t.Errorf("got %+v, %v, want %v", got, err, c.want)
			}
		})
	}
}

// The hook gets a request that it can still read.
func TestIdempotentHookGetsTheRequest(t *testing.T) {
	t.Parallel()
	guard, rdb := guards(t, idempotency.Options{})
	var told gate.Request
	r := posting("k", "")
	p := gate.Idempotent(guard, everyone, &gate.IdempotentOptions{OnError: func(r gate.Request, err error) {
		if told = r; !errors.Is(err, script.ErrConfiguration) {
			t.Errorf("the hook was told %v, want %v", err, script.ErrConfiguration)
		}
	}}).Enter(r)
	rdb.gone.Store(true)
	*r = request{path: "/another"} // as a framework does
	p.Leave(booked("tea"))
	if told == nil || told.Path() != "/orders" || told.Method() != "POST" {
		t.Errorf("the hook was told of %+v, want POST /orders", told)
	}
	rdb.gone.Store(false) // so that the hook is not told more
}

// TestIdempotentTellsHowTheBackgroundEnds: what goes on when Leave has returned may end in
// doubt, or fail, and then the hook is told once more.
func TestIdempotentTellsHowTheBackgroundEnds(t *testing.T) {
	t.Parallel()
	const lease = 30 * time.Second
	taken := func(t *testing.T, other *idempotency.Guard) {
		t.Helper()
		time.Sleep(2 * lease)
		run, err := other.BeginAny(t.Context(), ordered, "")
		if err != nil || run.Claim == nil {
			t.Fatalf("another request: got %+v, %v, want a claim", run, err)
		}
		if err := run.Claim.Conclude(t.Context(), idempotency.DoneWithout()); err != nil {
			t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		policy    idempotency.Policy
		status    int
		cut       string
		meanwhile func(*testing.T, *idempotency.Guard)
		want      []error
	}{
		"it is stored":                    {idempotency.Retry{}, 201, "refused", nil, []error{script.ErrMaybeExecuted}},
		"it is in doubt":                  {idempotency.Reject{}, 500, "refused", nil, []error{script.ErrMaybeExecuted, idempotency.ErrInDoubt}},
		"another request has run":         {idempotency.Retry{}, 201, "refused", taken, []error{script.ErrMaybeExecuted, idempotency.ErrLost}},
		"given up, and another was begun": {idempotency.Retry{}, 500, "lost", taken, []error{script.ErrMaybeExecuted}},
		"no record is left": {idempotency.Reject{}, 500, "refused", func(t *testing.T, other *idempotency.Guard) {
			t.Helper()
			if _, err := other.Forget(t.Context(), ordered); err != nil {
				t.Error(err)
			}
		}, []error{script.ErrMaybeExecuted, idempotency.ErrLost}},
		"it is dropped": {idempotency.Reject{}, 201, "forbidden", func(t *testing.T, _ *idempotency.Guard) {
			t.Helper()
			time.Sleep(4 * lease)
		}, []error{script.ErrConfiguration, idempotency.ErrDropped}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rdb := &redistest.CutClient{Client: redistest.BubbleClient(t, redistest.Bubble(t))}
				guardOn := func(rdb script.Client) *idempotency.Guard {
					g, err := idempotency.New(storetest.At(t, rdb, "neap"), "test", c.policy, &idempotency.Options{Budget: time.Minute, Lease: lease})
					if err != nil {
						t.Fatal(err)
					}
					return g
				}
				guard := guardOn(rdb)
				var h hook
				p := gate.Idempotent(guard, everyone, &gate.IdempotentOptions{OnError: func(r gate.Request, err error) {
					if claim, ok := idempotency.FromContext(r.Context()); !ok || claim.Key() != ordered {
						t.Error("the hook found no claim of the request, want one")
					}
					h.hear(r, err)
				}}).Enter(posting("k", ""))
				rdb.Cut(c.cut)
				p.Leave(answered(c.status))
				if c.meanwhile != nil {
					c.meanwhile(t, guardOn(rdb.Client))
				}
				rdb.Mend()
				time.Sleep(2 * lease)
				synctest.Wait()
				if n := guard.Stats().Concluding; !slices.EqualFunc(h.errs, c.want, errors.Is) || n != 0 {
					t.Errorf("the hook was told %v, and %d go on, want %v and none", h.errs, n, c.want)
				}
			})
		})
	}
}

// In a chain the gates outside see the replay, and those inside are not asked.
func TestIdempotentInAChain(t *testing.T) {
	t.Parallel()
	guard, _ := guards(t, idempotency.Options{})
	var seen []*gate.Reply
	var mu sync.Mutex
	outer := always(gate.Pass{Capture: 100, Leave: func(r *gate.Reply) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r)
	}})
	inner := hourly(t, 1)
	g := gate.Chain(outer, gate.Idempotent(guard, everyone, nil), gate.RateLimit(inner, everyone, nil))
	p := g.Enter(posting("k", ""))
	p.Leave(booked("tea"))
	replays(t, g, posting("k", ""), 201, "tea")
	if len(seen) != 2 || string(seen[1].Body) != "tea" || used(t, inner) != 1 {
		t.Errorf("outside %+v was seen, and %d taken inside, want two replies, tea the second, and 1 taken",
			seen, used(t, inner))
	}
}

func TestIdempotentPanics(t *testing.T) {
	t.Parallel()
	guard, _ := guards(t, idempotency.Options{})
	for field, wire := range map[string]func() *gate.IdempotentOptions{
		"Methods[1]":        func() *gate.IdempotentOptions { return &gate.IdempotentOptions{Methods: []string{"POST", "put"}} },
		"Methods[0]":        func() *gate.IdempotentOptions { return &gate.IdempotentOptions{Methods: []string{""}} },
		"Fields[1]":         func() *gate.IdempotentOptions { return &gate.IdempotentOptions{Fields: []gate.Key{everyone, nil}} },
		"Wait":              func() *gate.IdempotentOptions { return &gate.IdempotentOptions{Wait: 25 * time.Hour} },
		"Fingerprint is 2":  func() *gate.IdempotentOptions { return &gate.IdempotentOptions{Fingerprint: 2} },
		"Fingerprint is -1": func() *gate.IdempotentOptions { return &gate.IdempotentOptions{Fingerprint: -1} },
		"Fields replace": func() *gate.IdempotentOptions {
			return &gate.IdempotentOptions{Fields: []gate.Key{everyone}, Fingerprint: gate.CanonicalJSON}
		},
		"MaxBody":            func() *gate.IdempotentOptions { return &gate.IdempotentOptions{MaxBody: -1} },
		"MaxResponse":        func() *gate.IdempotentOptions { return &gate.IdempotentOptions{MaxResponse: -1} },
		"set-cookie":         func() *gate.IdempotentOptions { return &gate.IdempotentOptions{Headers: []string{"set-cookie"}} },
		"WWW-Authenticate":   func() *gate.IdempotentOptions { return &gate.IdempotentOptions{Headers: []string{"WWW-Authenticate"}} },
		"Content-Length":     func() *gate.IdempotentOptions { return &gate.IdempotentOptions{Headers: []string{"Content-Length"}} },
		`"X Y" is no header`: func() *gate.IdempotentOptions { return &gate.IdempotentOptions{Headers: []string{"X Y"}} },
	} {
		v, ok := panics(t, func() { gate.Idempotent(guard, everyone, wire()) }).(string)
		if !ok || !strings.HasPrefix(v, "gate.Idempotent: ") || !strings.Contains(v, field) {
			t.Errorf("%s: got the panic %v, want one that begins with gate.Idempotent and names it", field, v)
		}
	}
	for what, wire := range map[string]func(){
		"the guard":     func() { gate.Idempotent(nil, everyone, nil) },
		"the principal": func() { gate.Idempotent(guard, nil, nil) },
	} {
		if v, ok := panics(t, wire).(string); !ok || !strings.HasPrefix(v, "gate.Idempotent: "+what+" is nil") {
			t.Errorf("%s: got the panic %v, want one that says that it is nil", what, v)
		}
	}
}

func TestIdempotentOptionsAreCopied(t *testing.T) {
	t.Parallel()
	guard, _ := guards(t, idempotency.Options{})
	opts := &gate.IdempotentOptions{
		Methods: []string{"PUT"}, Fields: []gate.Key{gate.ByHeader("X-Amount")}, Headers: []string{"X-Cost"},
		Skip: func(r gate.Request) bool { return r.Path() == "/healthz" },
		Render: func(d gate.Denial) gate.Reply {
			if d.Status != 422 || d.Type != gate.TypeIdempotency+"key-reused" || d.RetryAfter != 0 {
				t.Errorf("got the denial %+v, want 422 of the type key-reused, without a time to retry", d)
			}
			return gate.Reply{Body: []byte("mine")}
		},
	}
	g := gate.Idempotent(guard, everyone, opts)
	opts.Methods[0], opts.Fields[0], opts.Headers[0] = "POST", failing(errors.New("boom")), "X-Other"
	*opts = gate.IdempotentOptions{}
	put := func(amount, path string) *request {
		r := posting("k", "")
		r.method, r.path, r.header["X-Amount"] = "PUT", path, []string{amount}
		return r
	}
	p := g.Enter(put("5", "/orders"))
	reply := booked("tea")
	reply.Header = append(reply.Header, gate.Field{Name: "X-Cost", Value: "5"}, gate.Field{Name: "X-Other", Value: "6"})
	p.Leave(reply)
	again := g.Enter(put("5", "/orders"))
	if single(t, again.Reply.Header, "X-Cost") != "5" || lines(again.Reply.Header, "X-Other") != nil {
		t.Errorf("got %+v, want it replayed with X-Cost: 5 and without X-Other", again.Reply)
	}
	if p := g.Enter(put("6", "/orders")); status(p) != 422 || string(p.Reply.Body) != "mine" {
		t.Errorf("another amount: got %+v, want 422 with the body mine", p.Reply)
	}
	for _, r := range []*request{posting("k", ""), put("5", "/healthz")} {
		if p := g.Enter(r); p.Reply != nil || p.Leave != nil {
			t.Errorf("%s %s is guarded, want it passed as it is", r.method, r.path)
		}
	}
}

// With RunUnguarded the handler runs while Redis is down. The hook is told, and a later
// request gets the answer.
func TestIdempotentRunsUnguarded(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, time.Second} {
		guard, severed := guards(t, idempotency.Options{})
		var h hook
		g := gate.Idempotent(guard, everyone, &gate.IdempotentOptions{Fail: idempotency.RunUnguarded, Wait: wait, OnError: h.hear})
		severed.gone.Store(true)
		p := g.Enter(posting("k", "tea"))
		if p.Reply != nil || !errors.Is(h.take(), script.ErrConfiguration) {
			t.Fatalf("wait %v: got %+v, want the handler to run, and the hook told of %v", wait, p.Reply, script.ErrConfiguration)
		}
		claim, ok := idempotency.FromContext(p.Context)
		if !ok || claim.Key() != ordered || !errors.Is(claim.Unguarded(), script.ErrConfiguration) {
			t.Errorf("wait %v: got the claim %v, %t, want one of %q that says why it is unguarded", wait, claim, ok, ordered)
		}
		p.Leave(&gate.Reply{Status: 200, Body: []byte("tea")})
		if err := h.take(); !errors.Is(err, script.ErrConfiguration) {
			t.Errorf("wait %v: after the handler the hook was told %v, want %v", wait, err, script.ErrConfiguration)
		}
		severed.gone.Store(false)
		redistest.Await(t, time.Minute, "the answer to be stored", func() bool { return guard.Stats().Completed == 1 })
		replays(t, g, posting("k", "tea"), 200, "tea")
	}
}

// A hook that panics leaves no claim behind.
func TestIdempotentUnguardedHookPanics(t *testing.T) {
	t.Parallel()
	guard, severed := guards(t, idempotency.Options{})
	g := gate.Idempotent(guard, everyone, &gate.IdempotentOptions{
		Fail: idempotency.RunUnguarded, OnError: func(gate.Request, error) { panic("the hook is broken") },
	})
	severed.gone.Store(true)
	panics(t, func() { g.Enter(posting("k", "")) })
	if n := guard.Stats().Running; n != 0 {
		t.Errorf("running after the panic: got %d, want 0", n)
	}
}
