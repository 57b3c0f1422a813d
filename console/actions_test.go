package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/neaptest"
)

// post sends what the page would send.
func post(h http.Handler, to, body string, header ...string) (status int, text string) {
	w := askWith(h, "POST", "/neap/"+to, body, append([]string{"Content-Type", "application/json"}, header...)...)
	return w.Code, strings.TrimSpace(w.Body.String())
}

// service is one with a primitive of each kind.
type service struct {
	redis   *neaptest.Redis
	limiter *limit.Limiter
	flight  *inflight.Limiter
	locker  *lock.Locker
	guard   *idempotency.Guard
	shop    *stock.Stock
}

func newService(t *testing.T) *service {
	t.Helper()
	r := neaptest.New(t)
	st := must(store.Open(r.Client(), nil))(t)
	ban := limit.Ban{After: 100, Within: time.Minute, For: time.Minute}
	return &service{
		redis:   r,
		limiter: must(limit.New(st, "api", []limit.Policy{limit.WithBan(limit.FixedWindow{Name: "w", Limit: 2, Window: time.Hour}, ban)}, nil))(t),
		flight:  must(inflight.New(st, "slots", 5, nil))(t),
		locker:  must(lock.New(st, "jobs", nil))(t),
		guard:   must(idempotency.New(st, "orders", idempotency.Reject{}, nil))(t),
		shop:    must(stock.New(st, "shop", nil))(t),
	}
}

func (s *service) all() Primitives {
	return Primitives{
		Limiters: []*limit.Limiter{s.limiter}, InFlight: []*inflight.Limiter{s.flight}, Lockers: []*lock.Locker{s.locker},
		Guards: []*idempotency.Guard{s.guard}, Stocks: []*stock.Stock{s.shop},
	}
}

func TestLookingUpAndActing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := newService(t)
		var acted []string
		h := Handler(must(store.Open(s.redis.Client(), nil))(t), everyone, &Options{Actions: s.all(), Acted: func(r *http.Request, a Action, err error) {
			acted = append(acted, fmt.Sprintf("%s %s %s %s %v %d %s %v", a.Primitive, a.Name, a.Do, a.Key, a.For, a.Units, a.ID, err))
		}})
		must(s.limiter.TakeN(ctx, "alice", 2))(t)
		slot := must(s.flight.Try(ctx, "alice"))(t)
		held := must(s.locker.As("worker-1").Try(ctx, "nightly"))(t)
		run := must(s.guard.Begin(ctx, "order-1", ""))(t)
		if err := run.Claim.Conclude(ctx, idempotency.Unknown()); err != nil {
			t.Fatal(err)
		}
		must(s.shop.Open(ctx, "chair", 5, time.Now().Add(time.Hour)))(t)

		for _, c := range []struct{ to, body, want string }{
			{"lookup", `{"primitive":"limit","name":"api","key":"alice"}`, `200 {"states":[{"policy":"w","unit":"","shadow":false,"allowed":false,"banned":false,"limit":2,"remaining":0,"retryAfter":3600000,"resetAfter":3600000}],"degraded":false,"canBan":true,"banned":0}`},
			{"act", `{"primitive":"limit","name":"api","key":"alice","do":"reset","confirmed":true}`, `200 {"found":true}`},
			{"act", `{"primitive":"limit","name":"api","key":"bob","do":"reset","confirmed":true}`, `200 {"found":false}`},
			{"act", `{"primitive":"limit","name":"api","key":"alice","do":"ban","confirmed":true,"seconds":90}`, `200 {"found":true}`},
			{"lookup", `{"primitive":"limit","name":"api","key":"alice"}`, `200 {"states":[{"policy":"w","unit":"","shadow":false,"allowed":false,"banned":true,"limit":2,"remaining":0,"retryAfter":90000,"resetAfter":90000}],"degraded":false,"canBan":true,"banned":90000}`},
			{"act", `{"primitive":"limit","name":"api","key":"alice","do":"unban","confirmed":true}`, `200 {"found":true}`},
			{"act", `{"primitive":"limit","name":"api","key":"alice","do":"ban","confirmed":true}`, `400 {"error":"seconds"}`},
			{"act", `{"primitive":"limit","name":"api","key":"alice","do":"ban","confirmed":true,"seconds":9223372036854775807}`, `400 {"error":"seconds"}`},
			{"act", `{"primitive":"limit","name":"api","key":"alice","do":"reset"}`, `400 {"error":"not confirmed"}`},
			{"act", `{"primitive":"limit","name":"api","key":"","do":"reset","confirmed":true}`, `400 {"error":"empty"}`},
			{"act", `{"primitive":"limit","name":"api","key":"alice","do":"force","confirmed":true}`, `404 {"error":"unknown action"}`},
			{"act", `{"primitive":"limit","name":"other","key":"alice","do":"reset","confirmed":true}`, `404 {"error":"unknown action"}`},
			{"lookup", `{"primitive":"inflight","name":"slots","key":"alice"}`, `200 {"inFlight":1}`},
			{"act", `{"primitive":"inflight","name":"slots","key":"alice","do":"reset","confirmed":true}`, `404 {"error":"unknown action"}`},
			{"lookup", `{"primitive":"lock","name":"jobs","key":"nightly"}`, `200 {"held":true,"owner":"worker-1","holds":1,"fence":946684800000000,"lease":30000}`},
			{"act", `{"primitive":"lock","name":"jobs","key":"nightly","do":"force","confirmed":true,"fence":946684800000000}`, `200 {"found":true}`},
			{"lookup", `{"primitive":"lock","name":"jobs","key":"nightly"}`, `200 {"held":false,"owner":"","holds":0,"fence":946684800000000,"lease":0}`},
			{"lookup", `{"primitive":"guard","name":"orders","key":"order-1"}`, `200 {"state":"in doubt","attempt":1,"fence":946684800000000,"lease":0,"expires":`},
			{"act", `{"primitive":"guard","name":"orders","key":"order-1","do":"done","confirmed":true,"fence":946684800000000,"state":"in doubt"}`, `200 {"found":true}`},
			{"lookup", `{"primitive":"guard","name":"orders","key":"order-1"}`, `200 {"state":"noresult"`},
			{"act", `{"primitive":"guard","name":"orders","key":"order-1","do":"nothing done","confirmed":true,"fence":946684800000000,"state":"noresult"}`, `409 {"error":"not in doubt"}`},
			{"act", `{"primitive":"guard","name":"orders","key":"order-1","do":"forget","confirmed":true,"fence":946684800000000,"state":"noresult"}`, `200 {"found":true}`},
			{"lookup", `{"primitive":"guard","name":"orders","key":"order-1"}`, `200 {"state":"","attempt":0`},
			{"act", `{"primitive":"stock","name":"shop","key":"chair","do":"restock","confirmed":true,"units":3,"id":"d-1"}`, `200 {"found":true}`},
			{"lookup", `{"primitive":"stock","name":"shop","key":"chair"}`, `200 {"units":8,"left":8,"held":0,"sold":0,"lifetime":3600000}`},
			{"act", `{"primitive":"stock","name":"shop","key":"table","do":"restock","confirmed":true,"units":3,"id":"d-1"}`, `409 {"error":"unknown item"}`},
			{"act", `{"primitive":"stock","name":"shop","key":"chair","do":"restock","confirmed":true,"units":3}`, `400 {"error":"id"}`},
			{"act", `{"primitive":"stock","name":"shop","key":"chair","do":"restock","confirmed":true,"units":-1,"id":"d-2"}`, `400 {"error":"units"}`},
			{"lookup", `{"primitive":"lock","name":"api","key":"alice"}`, `404 {"error":"unknown primitive"}`},
		} {
			status, text := post(h, c.to, c.body)
			if got := fmt.Sprint(status, " ", text); !strings.HasPrefix(got, c.want) {
				t.Errorf("%s %s: got %s, want %s", c.to, c.body, got, c.want)
			}
		}
		for i, want := range map[int]string{0: "limit api reset alice 0s 0  <nil>", 2: "limit api ban alice 1m30s 0  <nil>", 9: "stock shop restock chair 0s 3 d-1 <nil>"} {
			if len(acted) < 10 || acted[i] != want {
				t.Errorf("Acted: got %q, want %q as the call %d", acted, want, i)
			}
		}
		_ = slot.Release(ctx)
		_ = held.Release(ctx) // which was forced
	})
}

// TestAnActionIsAboutWhatWasLookedUp: the next holder's lock, and the next run of a key, are not ended in place of the last.
func TestAnActionIsAboutWhatWasLookedUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := newService(t)
		var heard []error
		h := Handler(s.redis.Client(), everyone, &Options{Actions: s.all(), Acted: func(_ *http.Request, _ Action, err error) { heard = append(heard, err) }})
		held := must(s.locker.As("worker-1").Try(ctx, "nightly"))(t)
		run := must(s.guard.Begin(ctx, "order-1", ""))(t)
		seen := fmt.Sprintf(`"confirmed":true,"fence":%d`, held.Fence())
		if err := errors.Join(held.Release(ctx), run.Claim.Conclude(ctx, idempotency.DoneWithout())); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		next := must(s.locker.As("worker-2").Try(ctx, "nightly"))(t)
		for _, body := range []string{
			`{"primitive":"lock","name":"jobs","key":"nightly","do":"force",` + seen + `}`,
			`{"primitive":"lock","name":"jobs","key":"nightly","do":"force","confirmed":true}`,
			`{"primitive":"guard","name":"orders","key":"order-1","do":"forget","state":"pending",` + seen + `}`,
		} {
			if status, text := post(h, "act", body); status != 409 || text != `{"error":"changed"}` {
				t.Errorf("%s: got %d %s, want 409, that it has changed", body, status, text)
			}
		}
		if len(heard) != 3 || heard[0] == nil {
			t.Errorf("Acted: got the errors %v, want three", heard)
		}
		if r := must(s.guard.Inspect(ctx, "order-1"))(t); r.State != idempotency.NoResult {
			t.Errorf("got the record %+v, want it not forgotten", r)
		}
		if err := next.Release(ctx); err != nil {
			t.Errorf("the next holder: got %v, want its lock not ended", err)
		}
	})
}

// TestAClientThatLeavesUndoesNothing: the action is done, and Acted hears that it was.
func TestAClientThatLeavesUndoesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newService(t)
		must(s.limiter.TakeN(t.Context(), "alice", 2))(t)
		var heard []error
		h := Handler(s.redis.Client(), everyone, &Options{Actions: s.all(), Acted: func(_ *http.Request, _ Action, err error) { heard = append(heard, err) }})
		ctx, leave := context.WithCancel(t.Context())
		leave()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/act", strings.NewReader(`{"primitive":"limit","name":"api","key":"alice","do":"reset","confirmed":true}`))
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(httptest.NewRecorder(), r)
		if len(heard) != 1 || heard[0] != nil {
			t.Errorf("Acted: got the errors %v, want one call, and no error", heard)
		}
		if d := must(s.limiter.Peek(t.Context(), "alice"))(t); d.Remaining != 2 {
			t.Errorf("got %d left, want 2: it was reset", d.Remaining)
		}
	})
}

// TestLookingUpWithoutBansAndWithoutRedis: the page offers no ban that a limiter does not have, and says who decides.
func TestLookingUpWithoutBansAndWithoutRedis(t *testing.T) {
	t.Parallel()
	plain := must(limit.New(away(t), "plain", []limit.Policy{limit.FixedWindow{Limit: 2, Window: time.Hour}}, nil))(t)
	h := Handler(away(t), everyone, &Options{LookUp: Primitives{Limiters: []*limit.Limiter{plain}}})
	status, text := post(h, "lookup", `{"primitive":"limit","name":"plain","key":"alice"}`)
	if status != 200 || !strings.HasSuffix(text, `"degraded":true,"canBan":false,"banned":0}`) {
		t.Errorf("got %d %s, want it degraded, and no ban", status, text)
	}
}

// TestAnUnknownBanIsNoMissingBan: if Redis does not say whether a subject is banned, the page says so and still offers the ban.
func TestAnUnknownBanIsNoMissingBan(t *testing.T) {
	t.Parallel()
	policy := limit.WithBan(limit.FixedWindow{Limit: 2, Window: time.Hour}, limit.Ban{After: 100, Within: time.Minute, For: time.Minute})
	l := must(limit.New(away(t), "strict", []limit.Policy{policy}, nil))(t)
	h := Handler(away(t), everyone, &Options{Actions: Primitives{Limiters: []*limit.Limiter{l}}})
	status, text := post(h, "lookup", `{"primitive":"limit","name":"strict","key":"alice"}`)
	if status != 200 || !strings.HasSuffix(text, `"degraded":true,"canBan":true,"banned":0,"unknown":"not executed"}`) {
		t.Errorf("got %d %s, want it degraded, with a ban that is not known", status, text)
	}
}

// TestWhatMayBeLookedUpMayNotBeActedUpon.
func TestWhatMayBeLookedUpMayNotBeActedUpon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newService(t)
		must(s.limiter.Take(t.Context(), "alice"))(t)
		h := Handler(s.redis.Client(), everyone, &Options{LookUp: s.all()})
		for _, which := range h.(*console).things.order {
			for _, do := range []string{"reset", "ban", "unban", "force", "nothing done", "done", "forget", "restock", ""} {
				body := fmt.Sprintf(`{"primitive":%q,"name":%q,"key":"alice","do":%q,"confirmed":true,"seconds":1,"units":1,"id":"1"}`, which.Primitive, which.Name, do)
				if status, text := post(h, "act", body); status != 404 {
					t.Errorf("%s: got %d %s, want 404", body, status, text)
				}
			}
		}
		if d := must(s.limiter.Peek(t.Context(), "alice"))(t); d.Remaining != 1 {
			t.Errorf("got %d left, want 1: nothing was reset", d.Remaining)
		}
	})
}

// TestOthersPagesPostNothing: what a browser sends for another origin is refused, and so is what a form can send.
func TestOthersPagesPostNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newService(t)
		h := Handler(s.redis.Client(), everyone, &Options{Actions: s.all()})
		must(s.limiter.Take(t.Context(), "alice"))(t)
		for to, body := range map[string]string{
			"lookup": `{"primitive":"limit","name":"api","key":"alice"}`,
			"act":    `{"primitive":"limit","name":"api","key":"alice","do":"reset","confirmed":true}`,
		} {
			for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
				if status, text := post(h, to, body, header...); status != 403 {
					t.Errorf("%s with %v: got %d %s, want 403", to, header, status, text)
				}
			}
			for _, typ := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"} {
				if status, text := post(h, to, body, "Content-Type", typ); status != 415 {
					t.Errorf("%s as %q: got %d %s, want 415", to, typ, status, text)
				}
			}
			if w := askWith(h, "PUT", "/"+to, body, "Content-Type", "application/json"); w.Code != 405 || w.Header().Get("Allow") != "POST" {
				t.Errorf("PUT %s: got %d, want 405", to, w.Code)
			}
			for _, bad := range []string{"", "{", `{"other":1}`, `{"units":1.5}`, `{"units":1e21}`, `{"key":"` + strings.Repeat("x", maxBody) + `"}`} {
				if status, text := post(h, to, bad); status != 400 || text != `{"error":"request"}` {
					t.Errorf("%s of %.20s: got %d %s, want 400", to, bad, status, text)
				}
			}
		}
		if d := must(s.limiter.Peek(t.Context(), "alice"))(t); d.Remaining != 1 {
			t.Errorf("got %d left, want 1: nothing was reset", d.Remaining)
		}
		if status, text := post(h, "act", `{"primitive":"limit","name":"api","key":"alice","do":"reset","confirmed":true}`, "Sec-Fetch-Site", "same-origin"); status != 200 {
			t.Errorf("of the page itself: got %d %s, want 200", status, text)
		}
	})
}

// TestErrorsAreNames: no text of an error, which may name a key, reaches the page.
func TestErrorsAreNames(t *testing.T) {
	t.Parallel()
	cases := []struct {
		err  error
		want string
	}{
		{limit.ErrSubject, `400 {"error":"empty"}`},
		{inflight.ErrSubject, `400 {"error":"empty"}`},
		{limit.ErrNoBan, `404 {"error":"unknown action"}`},
		{lock.ErrKey, `400 {"error":"empty"}`},
		{idempotency.ErrKey, `400 {"error":"empty"}`},
		{stock.ErrItem, `400 {"error":"empty"}`},
		{stock.ErrID, `400 {"error":"id"}`},
		{stock.ErrUnits, `400 {"error":"units"}`},
		{stock.ErrQuantity, `409 {"error":"quantity"}`},
		{stock.ErrUnknown, `409 {"error":"unknown item"}`},
		{stock.ErrDisagrees, `409 {"error":"disagrees"}`},
		{idempotency.ErrInFlight, `409 {"error":"in flight"}`},
		{idempotency.ErrNotInDoubt, `409 {"error":"not in doubt"}`},
		{errChanged, `409 {"error":"changed"}`},
		{&script.Error{Class: script.ErrNotExecuted, Err: errors.New("alice")}, `503 {"error":"not executed"}`},
		{&script.Error{Class: script.ErrMaybeExecuted, Err: errors.New("alice")}, `503 {"error":"maybe executed"}`},
		{&script.Error{Class: script.ErrConfiguration, Err: errors.New("alice")}, `503 {"error":"configuration"}`},
		{context.Canceled, `503 {"error":"canceled"}`},
		{context.DeadlineExceeded, `503 {"error":"canceled"}`},
	}
	if len(cases) != len(failures) {
		t.Errorf("got %d errors in this test and %d that the page has names for, want each of them", len(cases), len(failures))
	}
	for _, others := range []error{&script.Error{Class: script.ErrFailed, Err: errors.New("alice")}, errors.New("alice")} {
		cases = append(cases, struct {
			err  error
			want string
		}{others, `500 {"error":"failed"}`})
	}
	for _, c := range cases {
		w := ask(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { refuse(w, fmt.Errorf("alice: %w", c.err)) }), "POST", "/")
		if got := fmt.Sprint(w.Code, " ", strings.TrimSpace(w.Body.String())); got != c.want {
			t.Errorf("%v: got %s, want %s", c.err, got, c.want)
		}
	}
}

// TestHostileNamesStayText: the answer is JSON that no browser reads as markup, and says nothing of what was asked.
func TestHostileNamesStayText(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newService(t)
		h := Handler(s.redis.Client(), everyone, &Options{Actions: s.all()}).(*console)
		const hostile = `</script><img src=x onerror=alert(1)>`
		held := must(s.locker.As(hostile).Try(t.Context(), hostile))(t)
		defer held.Release(t.Context())
		body := fmt.Sprintf(`{"primitive":"lock","name":"jobs","key":%q}`, hostile)
		w := askWith(h, "POST", "/lookup", body, "Content-Type", "application/json")
		if w.Code != 200 || strings.Contains(w.Body.String(), "<") || w.Header().Get("Content-Type") != "application/json; charset=utf-8" {
			t.Errorf("a hostile key: got %d %s as %s, want JSON without <", w.Code, w.Body, w.Header().Get("Content-Type"))
		}
		h.timeline.hear(store.Event{Primitive: store.Limit, Name: hostile, Policy: hostile + "\n\ndata: {}", Outcome: store.Granted})
		stream := ask(h, "GET", "/events").Body.String()
		if strings.Contains(stream, "<") || strings.Count(stream, "data: ") != 2 || strings.Count(stream, "\n\n") != 2 {
			t.Errorf("a hostile policy: got the stream %q, want one event, without <", stream)
		}
	})
}
