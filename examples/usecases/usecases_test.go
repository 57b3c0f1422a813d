package usecases

import (
	"context"
	"expvar"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"github.com/labstack/echo/v4"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
	"github.com/neap-go/neap/neaptest"
	"github.com/neap-go/neap/nethttp"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	redistest.Main(m)
}

// unhurried is a store with a budget for a busy machine.
func unhurried(t *testing.T) *store.Store {
	t.Helper()
	return storetest.Open(t, redistest.Standalone(t).Unhurried(t), store.Options{Budget: 5 * time.Second})
}

func local(t *testing.T, most int64) *limit.Limiter {
	t.Helper()
	l, err := limit.NewLocal("test", []limit.Policy{limit.FixedWindow{Limit: most, Window: time.Hour}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// serve mounts a gate and answers a request made by change.
func serve(g gate.Gate) func(path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	mux := http.NewServeMux()
	limited := nethttp.Middleware(g)
	for _, path := range []string{"/hello", "/export", "/healthz"} {
		mux.Handle("GET "+path, limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	}
	return func(path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", path, nil)
		for _, c := range change {
			c(r)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w
	}
}

func expect(t *testing.T, what string, w *httptest.ResponseRecorder, status int) {
	t.Helper()
	if w.Code != status {
		t.Errorf("%s: got %d, want %d", what, w.Code, status)
	}
}

func TestFrameworks(t *testing.T) {
	t.Parallel()
	r, e, app := gin.New(), echo.New(), fiber.New()
	Frameworks(local(t, 5), r, e, app)
	// One limiter: what one framework admits, the others count.
	for i, h := range []func() int{
		func() int { return code(r) }, func() int { return code(e) }, func() int { return fiberCode(t, app) },
	} {
		if got := h(); got != 200 {
			t.Errorf("framework %d: got %d, want 200", i, got)
		}
	}
	if got := []int{code(r), code(e), code(r), code(e)}; got[2] != 429 || got[3] != 429 {
		t.Errorf("the next four requests: got %v, want 429 of the last two", got)
	}
}

func code(h http.Handler) int {
	r := httptest.NewRequest("GET", "/hello", nil)
	r.RemoteAddr = "0.0.0.0:0" // what Fiber's Test comes from
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func fiberCode(t *testing.T, app *fiber.App) int {
	t.Helper()
	response, err := app.Test(httptest.NewRequest("GET", "/hello", nil), -1)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

func TestBehindProxy(t *testing.T) {
	t.Parallel()
	ask := serve(BehindProxy(local(t, 1)))
	from := func(peer, forwarded string) func(*http.Request) {
		return func(r *http.Request) {
			r.RemoteAddr = peer + ":1234"
			r.Header.Set("X-Forwarded-For", forwarded)
		}
	}
	expect(t, "a client", ask("/hello", from("10.0.0.1", "192.0.2.1")), 200)
	expect(t, "the same by another proxy", ask("/hello", from("10.0.0.2", "192.0.2.1")), 429)
	expect(t, "another client", ask("/hello", from("10.0.0.1", "192.0.2.2")), 200)
	expect(t, "one who forges", ask("/hello", from("198.51.100.1", "192.0.2.9")), 200)
	expect(t, "and forges another", ask("/hello", from("198.51.100.1", "192.0.2.10")), 429)
}

func TestByAPIKey(t *testing.T) {
	t.Parallel()
	ask := serve(ByAPIKey(local(t, 1)))
	key := func(values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header["X-Api-Key"] = values }
	}
	expect(t, "a key", ask("/hello", key("a")), 200)
	expect(t, "the same", ask("/hello", key("a")), 429)
	expect(t, "another", ask("/hello", key("b")), 200)
	expect(t, "the address as a key", ask("/hello", key("192.0.2.1")), 200)
	expect(t, "the address", ask("/hello"), 200)
	expect(t, "the address again", ask("/hello"), 429)
	expect(t, "two keys", ask("/hello", key("c", "d")), 400)
}

func TestByPlan(t *testing.T) {
	t.Parallel()
	ask := serve(ByPlan(local(t, 1)))
	as := func(id string, rate int64) func(*http.Request) {
		return func(r *http.Request) {
			*r = *r.WithContext(context.WithValue(r.Context(), tenantKey{}, Tenant{id, rate}))
		}
	}
	expect(t, "free", ask("/hello", as("a", 0)), 200)
	expect(t, "free again", ask("/hello", as("a", 0)), 429)
	for range 10 {
		expect(t, "paid", ask("/hello", as("b", 10)), 200)
	}
	expect(t, "paid, once more", ask("/hello", as("b", 10)), 429)
	expect(t, "nobody", ask("/hello"), 401)
}

// TestPatient: what is a second away is waited for, and what is an hour away is not.
func TestPatient(t *testing.T) {
	t.Parallel()
	alice := func(r *http.Request) { r.Header.Set("X-Api-Key", "alice") }
	for _, c := range []struct {
		window time.Duration
		status int
	}{{time.Second, 200}, {time.Hour, 429}} {
		synctest.Test(t, func(t *testing.T) {
			limiter, err := limit.NewLocal("test", []limit.Policy{limit.FixedWindow{Limit: 1, Window: c.window}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			ask := serve(Patient(limiter))
			expect(t, "the first", ask("/hello", alice), 200)
			began := time.Now()
			expect(t, "the second", ask("/hello", alice), c.status)
			if waited := time.Since(began); waited != 0 && waited != c.window {
				t.Errorf("a window of %v: the second waited for %v, want the window or no time", c.window, waited)
			}
		})
	}
}

// TestThreeLevels: a user that is denied takes nothing of its plan.
func TestThreeLevels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		redis := neaptest.New(t)
		g, err := ThreeLevels(redis.Client())
		if err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		mux.Handle("GET /{plan}/{user}", nethttp.Middleware(g)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
		admitted := func(path string, n int) (got int) {
			for range n {
				w := httptest.NewRecorder()
				if mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil)); w.Code == 200 {
					got++
				}
			}
			return got
		}
		if got := admitted("/gold/ann", 50); got != 10 {
			t.Errorf("a user: got %d admitted, want 10", got)
		}
		others := 0
		for i := range 20 {
			others += admitted("/gold/"+strconv.Itoa(i), 5)
		}
		if others != 90 {
			t.Errorf("others of the plan: got %d admitted, want 90", others)
		}
	})
}

func TestQuota(t *testing.T) {
	t.Parallel()
	limiter, err := Quota(unhurried(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := limiter.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	subject := redistest.Prefix(t)
	for _, want := range []bool{true, false} {
		if d, err := limiter.TakeN(t.Context(), subject, 6000); err != nil || d.Allowed != want {
			t.Errorf("got %+v, %v, want allowed %t: 10,000 a day", d, err, want)
		}
	}
	if d, err := limiter.Peek(t.Context(), subject); err != nil || d.Remaining != 4000 && d.Remaining != 10_000 { // after midnight
		t.Errorf("got %+v, %v, want 4,000 left", d, err)
	}
}

func TestChanging(t *testing.T) {
	t.Parallel()
	day := time.Now().UTC().Day()
	rdb := unhurried(t)
	subject := redistest.Prefix(t)
	take := func(daily, n int64, want bool) {
		t.Helper()
		limiter, err := Changing(rdb, daily)
		if err != nil {
			t.Fatal(err)
		}
		if err := limiter.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		d, err := limiter.TakeN(t.Context(), subject, n)
		if midnight := time.Now().UTC().Day() != day; err != nil || d.Allowed != want && !midnight {
			t.Errorf("%d of %d a day: got %+v, %v, want allowed %t", n, daily, d, err, want)
		}
	}
	take(10, 10, true)
	take(10, 1, false)
	take(20, 10, true)
	take(20, 1, false)
	take(15, 1, false)
}

func TestSeveral(t *testing.T) {
	t.Parallel()
	limiter, err := Several(unhurried(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := limiter.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	d, err := limiter.TakeN(t.Context(), redistest.Prefix(t), 20)
	if err != nil || !d.Allowed {
		t.Fatalf("got %+v, %v, want 20 granted", d, err)
	}
	left := map[string]int64{}
	for s := range d.States() {
		left[s.Policy] = s.Remaining
	}
	if left["burst"] != 0 || left["daily"] != 9980 {
		t.Errorf("got %v left, want none of burst and 9980 of daily", left)
	}
}

func TestExpensive(t *testing.T) {
	t.Parallel()
	ask := serve(Expensive(local(t, 11)))
	expect(t, "a request", ask("/hello"), 200)
	expect(t, "an export", ask("/export"), 200)
	expect(t, "one more", ask("/hello"), 429)
	expect(t, "the health check", ask("/healthz"), 200)
}

func TestOwnAnswer(t *testing.T) {
	t.Parallel()
	ask := serve(OwnAnswer(local(t, 1)))
	expect(t, "a request", ask("/hello"), 200)
	w := ask("/hello")
	body, _ := io.ReadAll(w.Body)
	if w.Code != 429 || !strings.Contains(string(body), "Too Many Requests") || w.Header().Get("Retry-After") == "" ||
		w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("got %d %v %s, want 429 with Retry-After, and Too Many Requests as JSON", w.Code, w.Header(), body)
	}
}

// away is a Redis that is not there: all is decided in process, whatever else
// the machine is busy with.
type away struct{}

func (away) Process(_ context.Context, cmd redis.Cmder) error {
	cmd.SetErr(io.EOF)
	return cmd.Err()
}

func TestLogins(t *testing.T) {
	t.Parallel()
	g, err := Logins(away{}, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	if err != nil {
		t.Fatal(err)
	}
	status := 200
	h := nethttp.Middleware(g)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	address := "203.0.113.7"
	login := func(email string, with int) int {
		status = with
		r := httptest.NewRequest("POST", "/login", strings.NewReader(url.Values{"email": {email}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.RemoteAddr = "10.0.0.1:4711" // a proxy of ours
		r.Header.Set("X-Forwarded-For", address)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for range 10 {
		if got := login("bob@example.com", 200); got != 200 {
			t.Fatalf("one that succeeds: got %d, want 200", got)
		}
	}
	for i, email := range []string{"bob@example.com", "Bob@example.com", "BOB@example.com", "bob@Example.com", "bob@EXAMPLE.COM"} {
		if got := login(email, 401); got != 401 {
			t.Errorf("failure %d: got %d, want 401", i, got)
		}
	}
	for _, next := range []int{401, 200} {
		if got := login("bOb@example.com", next); got != 429 {
			t.Errorf("after five failures: got %d, want 429", got)
		}
	}
	for range 10 {
		if got := login("ann@example.com", 500); got != 500 {
			t.Errorf("a failure of the service: got %d, want 500", got)
		}
	}
	// Five failures of this address count. What was refused for Bob's account does not.
	for i := range 50 - 5 {
		if got := login(strconv.Itoa(i)+"@example.com", 401); got != 401 {
			t.Errorf("at account %d: got %d, want 401", i, got)
		}
	}
	if got := login("eve@example.com", 401); got != 429 {
		t.Errorf("after fifty failures from one address: got %d, want 429", got)
	}
	address = "203.0.113.8"
	if got := login("bob@example.com", 200); got != 200 {
		t.Errorf("from another address behind the same proxy: got %d, want 200", got)
	}
}

func TestBans(t *testing.T) {
	t.Parallel()
	guesses, err := Bans(unhurried(t))
	if err != nil {
		t.Fatal(err)
	}
	bob := redistest.Prefix(t)
	g := gate.RateLimit(guesses, gate.ByForm("email", nil), &gate.RateLimitOptions{Count: gate.OnlyFailures})
	h := nethttp.Middleware(g)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }))
	login := func(status int, least, most int) {
		t.Helper()
		r := httptest.NewRequest("POST", "/login", strings.NewReader(url.Values{"email": {bob}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if after, _ := strconv.Atoi(w.Header().Get("Retry-After")); w.Code != status || after < least || after > most {
			t.Errorf("got %d and Retry-After %d, want %d and %d to %d", w.Code, after, status, least, most)
		}
	}
	for range 5 {
		login(401, 0, 0)
	}
	for range 2 {
		login(429, 1, 600)
	}
	login(429, 601, 900) // the third denial
	login(429, 601, 900)
	subject, err := gate.Subject(gate.ByForm("email", nil), gate.Values{Form: map[string]string{"email": bob}})
	if err != nil {
		t.Fatal(err)
	}
	if found, err := guesses.Unban(t.Context(), subject); err != nil || !found {
		t.Errorf("the ban lifted: got found %t, %v, want it found", found, err)
	}
	login(429, 1, 600)
}

func TestListed(t *testing.T) {
	t.Parallel()
	limiter, err := limit.NewLocal("listed", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var blocked, allowed gate.List
	h := nethttp.Middleware(Listed(limiter, &blocked, &allowed))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	ask := func() int {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "[2001:db8::1]:1234"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for _, c := range []struct {
		list *gate.List
		want int
	}{{nil, 200}, {nil, 429}, {&allowed, 200}, {&blocked, 403}} {
		if c.list != nil {
			if err := c.list.Swap(nil, []netip.Prefix{netip.MustParsePrefix("2001:db8::1/128")}); err != nil {
				t.Fatal(err)
			}
		}
		if got := ask(); got != c.want {
			t.Errorf("got %d, want %d", got, c.want)
		}
	}
}

func TestInFlight(t *testing.T) {
	t.Parallel()
	g, err := InFlight(away{})
	if err != nil {
		t.Fatal(err)
	}
	var export func(depth int) int // each from within the one before
	export = func(depth int) int {
		h := nethttp.Middleware(g)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if depth > 0 {
				w.WriteHeader(export(depth - 1))
			}
		}))
		r := httptest.NewRequest("GET", "/export", nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tenantKey{}, Tenant{ID: "a"})))
		return w.Code
	}
	for range 3 {
		if one, two, three := export(0), export(1), export(2); one != 200 || two != 200 || three != 429 {
			t.Errorf("one, two and three at once: got %d, %d and %d, want 200, 200 and 429", one, two, three)
		}
	}
}

func TestTrial(t *testing.T) {
	t.Parallel()
	st, err := store.Open(away{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := Trial(st)
	if err != nil {
		t.Fatal(err)
	}
	d, err := limiter.Take(t.Context(), "s")
	if err != nil || d.Policy != "bucket-10-1s-20" {
		t.Fatalf("got %+v, %v, want a decision by bucket-10-1s-20", d, err)
	}
	for s := range d.States() {
		if s.Shadow != (s.Policy == "daily") || s.Shadow && s.Remaining != 999 {
			t.Errorf("got %+v, want daily alone as a shadow, with 999 left", s)
		}
	}
}

func TestWhenRedisIsDown(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	st, err := store.Open(srv.Unhurried(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := WhenRedisIsDown(t.Context(), st, []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	ask := serve(gate.RateLimit(limiter, gate.ByIP(nil), nil))
	redistest.Await(t, 20*time.Second, "a decision by Redis", func() bool { return ask("/hello").Code == 429 })
	srv.Stop(t)
	expect(t, "without Redis", ask("/hello"), 200)
	expect(t, "and again", ask("/hello"), 200)
	Publish(limiter)
	if text := expvar.Get("limit.api").String(); !strings.Contains(text, `"Degraded":`) || strings.Contains(text, `"Degraded":0`) {
		t.Errorf("got the published %s, want some Degraded", text)
	}
}

// TestWhenRedisIsDownLogsLimits, and no lock that uses the same store.
func TestWhenRedisIsDownLogsLimits(t *testing.T) { //nolint:paralleltest // it replaces slog.Default
	var logged lines
	defer redistest.DefaultLog(t, slog.NewTextHandler(&logged, nil))()
	st, err := store.Open(away{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := WhenRedisIsDown(t.Context(), st, []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	orders, err := lock.New(st, "orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	const undecided = "Redis did not decide"
	if _, err := orders.Try(t.Context(), "17"); err == nil || logged.has(undecided) {
		t.Errorf("a lock: got %v, want an error, and no line about a limiter", err)
	}
	if d, err := limiter.Take(t.Context(), "s"); err != nil || !d.Allowed || !logged.has(undecided) {
		t.Errorf("a decision: got %+v, %v, want it allowed, and a line", d, err)
	}
}

func TestOperate(t *testing.T) {
	account := gate.Join(gate.Fold(gate.ByForm("email", nil)), gate.ByIP(nil))
	t.Parallel()
	limiter := local(t, 1)
	h := nethttp.Middleware(gate.RateLimit(limiter, account, nil))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	login := func(email string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/login", strings.NewReader(url.Values{"email": {email}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	expect(t, "the first", login("Bob@example.com"), 200)
	expect(t, "the next", login("bob@example.com"), 429)
	standing, found, err := Operate(t.Context(), limiter, account, "bob@Example.com", netip.MustParseAddr("192.0.2.1"))
	if err != nil || standing.Remaining != 0 || !found {
		t.Errorf("got %d left, found %t, %v, want none left and found", standing.Remaining, found, err)
	}
	expect(t, "after the reset", login("bob@example.com"), 200)
}
