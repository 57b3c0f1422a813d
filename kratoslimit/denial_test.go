package kratoslimit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	"github.com/go-kratos/kratos/v2/middleware"
	kgrpc "github.com/go-kratos/kratos/v2/transport/grpc"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/grpclimit"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/kratoslimit"
	"github.com/neap-go/neap/nethttp"
)

// decisions are gates whose answer a client sees, and the status that it has over HTTP. Each
// answers several requests in the same way.
func decisions(t *testing.T) map[string]struct {
	gate   gate.Gate
	status int
} {
	t.Helper()
	_, rdb := redistest.Miniredis(t)
	down, downClient := redistest.Miniredis(t)
	down.SetError("LOADING Redis is loading the dataset in memory")
	used := hourly(t, 1)
	if _, err := used.Take(t.Context(), "everyone"); err != nil {
		t.Fatal(err)
	}
	slots, err := inflight.New(rdb, "kratos", 1, &inflight.Options{Fail: store.FailClosed, Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := slots.Try(t.Context(), "everyone"); err != nil {
		t.Fatal(err)
	}
	away, err := limit.New(downClient, "kratos", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, &limit.Options{Fail: store.FailClosed, Budget: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var blocked gate.List
	if err := blocked.Swap([]string{"everyone"}, nil); err != nil {
		t.Fatal(err)
	}
	refuse := func(status int) gate.Gate {
		return gate.RateLimit(hourly(t, 9), func(gate.Request) (string, error) { return "", gate.Refuse(status, "Not so") }, nil)
	}
	free := func(gate.Request) (int64, error) { return 0, nil }
	dear := func(gate.Request) (int64, error) { return 10, nil }
	quiet := func(gate.Request, error) {}
	own := func(gate.Denial) gate.Reply {
		return gate.Reply{Status: 503, Header: []gate.Field{{Name: "X-Own", Value: "a"}, {Name: "Content-Type", Value: "text/html"}}, Body: []byte("busy")}
	}
	return map[string]struct {
		gate   gate.Gate
		status int
	}{
		"admitted":              {gate.RateLimit(hourly(t, 9), everyone, &gate.RateLimitOptions{Cost: free}), 200},
		"admitted by two":       {gate.Chain(gate.RateLimit(hourly(t, 9), everyone, &gate.RateLimitOptions{Cost: free}), gate.RateLimit(hourly(t, 8), everyone, &gate.RateLimitOptions{Cost: free, Headers: gate.HeadersX})), 200},
		"the limit":             {gate.RateLimit(used, everyone, nil), 429},
		"the older fields":      {gate.RateLimit(used, everyone, &gate.RateLimitOptions{Headers: gate.HeadersLegacy}), 429},
		"a reply of its own":    {gate.RateLimit(used, everyone, &gate.RateLimitOptions{Render: own}), 503},
		"one of several limits": {gate.RateLimits(gate.RateLimit(hourly(t, 9), everyone, nil), gate.RateLimit(used, everyone, nil)), 429},
		"in flight":             {gate.Concurrency(slots, everyone, nil), 429},
		"a chain":               {gate.Chain(gate.RateLimit(hourly(t, 9), everyone, &gate.RateLimitOptions{Cost: free}), gate.Concurrency(slots, everyone, nil)), 429},
		"the block list":        {gate.Block(&blocked, everyone, nil), 403},
		"no key":                {gate.RateLimit(hourly(t, 9), gate.ByHeader("X-Account"), nil), 400},
		"a cost too high":       {gate.RateLimit(hourly(t, 9), everyone, &gate.RateLimitOptions{Cost: dear}), 400},
		"refused with 401":      {refuse(401), 401},
		"refused with 418":      {refuse(418), 418},
		"refused with 429":      {refuse(429), 429},
		"Redis is away":         {gate.RateLimit(away, everyone, &gate.RateLimitOptions{OnError: quiet}), 503},
		"a key that fails":      {gate.RateLimit(hourly(t, 9), func(gate.Request) (string, error) { return "", io.EOF }, &gate.RateLimitOptions{OnError: quiet}), 500},
		"no such parameter":     {gate.RateLimit(hourly(t, 9), gate.ByParam("none"), &gate.RateLimitOptions{OnError: quiet}), 500},
	}
}

// times are what differs between two answers that do not come at the same moment.
var times = regexp.MustCompile(`\s*nanos:\d+|\d\d+`)

// TestAnAnswerOverHTTPIsThatOfNethttp, but for its body, which is Kratos' own.
func TestAnAnswerOverHTTPIsThatOfNethttp(t *testing.T) {
	t.Parallel()
	for name, c := range decisions(t) {
		fields := func(h http.Header) string {
			for _, name := range []string{"Content-Type", "Content-Length", "Date"} {
				h.Del(name)
			}
			return times.ReplaceAllString(fmt.Sprint(h), "")
		}
		mux := http.NewServeMux()
		mux.Handle("POST /v1/orders/{shop}", nethttp.Middleware(c.gate)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
		want, _ := poster(t, mux)("tea", nil)
		ran := false
		got, body := overHTTP(t, &orders{create: func(_ context.Context, message *text) (*text, error) { ran = true; return message, nil }},
			khttp.Middleware(kratoslimit.Middleware(c.gate)))("tea", nil)
		contentType := got.Header.Get("Content-Type")
		if got.StatusCode != c.status || want.StatusCode != c.status || ran != (c.status == 200) {
			t.Errorf("%s: got the status %d, and nethttp %d, and the handler ran: %t, want %d", name, got.StatusCode, want.StatusCode, ran, c.status)
		}
		if got, want := fields(got.Header), fields(want.Header); got != want {
			t.Errorf("%s: got the fields\n%s, want those of nethttp\n%s", name, got, want)
		}
		var as struct {
			Code            int
			Reason, Message string
		}
		if err := json.Unmarshal([]byte(body), &as); c.status != 200 && (err != nil || as.Code != c.status || as.Message == "" || contentType != "application/json") {
			t.Errorf("%s: got %s of type %s, %v, want an error of Kratos", name, body, contentType, err)
		}
		if (as.Reason == "RATELIMIT") != (c.status == 429) {
			t.Errorf("%s: got the reason %q with a %d, want RATELIMIT for a 429 alone", name, as.Reason, c.status)
		}
		for _, text := range []string{"LOADING", "EOF", "everyone", "Kratos"} {
			if strings.Contains(body, text) {
				t.Errorf("%s: got %s, want no text of an error and no key", name, body)
			}
		}
	}
}

// TestAnErrorEncoderOfTheUser writes the body, and its type.
func TestAnErrorEncoderOfTheUser(t *testing.T) {
	t.Parallel()
	own := func(w http.ResponseWriter, _ *http.Request, err error) {
		as := kerrors.FromError(err)
		w.WriteHeader(int(as.Code))
		_, _ = io.WriteString(w, as.Reason+": "+as.Message)
	}
	a, body := overHTTP(t, &orders{}, khttp.ErrorEncoder(own), khttp.Middleware(kratoslimit.Middleware(gate.Chain(decisions(t)["the limit"].gate))))("tea", nil)
	if a.StatusCode != 429 || a.Header.Get("Retry-After") == "" || a.Header.Get("Content-Type") != "text/plain; charset=utf-8" || !strings.HasPrefix(body, "RATELIMIT: Request cannot be satisfied") {
		t.Errorf("got a %d, %v and %q, want a 429 with the header of the gate and the body of the encoder", a.StatusCode, a.Header, body)
	}
}

// TestAnAnswerOverGRPCIsThatOfGrpclimit in a server without Kratos.
func TestAnAnswerOverGRPCIsThatOfGrpclimit(t *testing.T) {
	t.Parallel()
	for name, c := range decisions(t) {
		answer := func(conn *grpc.ClientConn) string {
			var header, trailer metadata.MD
			st := status.Convert(call(t.Context(), conn, "tea", grpc.Header(&header), grpc.Trailer(&trailer)))
			if st.Code() != 0 && len(header) > 0 {
				t.Errorf("%s: got the header %v, want nothing but a trailer", name, header)
			}
			return times.ReplaceAllString(fmt.Sprint(st.Proto(), trailer), "")
		}
		want := answer(dial(t, grpc.NewServer(grpc.UnaryInterceptor(grpclimit.UnaryServerInterceptor(c.gate))), &orders{}))
		got := answer(overGRPC(t, &orders{}, kgrpc.Middleware(kratoslimit.Middleware(c.gate))))
		if strip := strings.NewReplacer(" ", "", "\u00a0", ""); strip.Replace(got) != strip.Replace(want) { // text of protobuf varies its spaces
			t.Errorf("%s: got\n%s, want that of grpclimit\n%s", name, got, want)
		}
	}
}

// TestARefusalIsNoneOfTheHandlers: a gate in a filter outside is told that a gate within has
// refused, also if the status is one of its own.
func TestARefusalIsNoneOfTheHandlers(t *testing.T) {
	t.Parallel()
	never := func(int) bool { return false } // gives everything back but refusals
	for name, c := range map[string]struct {
		within gate.Gate
		left   int64
	}{
		"admitted": {gate.RateLimit(hourly(t, 9), everyone, nil), 9},
		"refused":  {gate.RateLimit(hourly(t, 9), gate.ByHeader("X-Account"), nil), 8},
	} {
		for where, mount := range map[string]func(outer gate.Gate) []khttp.ServerOption{
			"a filter": func(outer gate.Gate) []khttp.ServerOption {
				return []khttp.ServerOption{khttp.Filter(kratoslimit.Filter(outer)), khttp.Middleware(kratoslimit.Middleware(c.within))}
			},
			"middleware": func(outer gate.Gate) []khttp.ServerOption {
				return []khttp.ServerOption{khttp.Middleware(kratoslimit.Middleware(outer), kratoslimit.Middleware(c.within))}
			},
			"a chain": func(outer gate.Gate) []khttp.ServerOption {
				return []khttp.ServerOption{khttp.Middleware(kratoslimit.Middleware(gate.Chain(outer, c.within)))}
			},
		} {
			l := hourly(t, 9)
			a, _ := overHTTP(t, &orders{}, mount(gate.RateLimit(l, everyone, &gate.RateLimitOptions{Count: never}))...)("tea", nil)
			if got := left(t, l); got != c.left {
				t.Errorf("%s inside of %s: got a %d and %d left, want %d", name, where, a.StatusCode, got, c.left)
			}
		}
	}
}

// TestARefusalThatMiddlewareDropped, in order to try again, is none: a gate outside is asked
// whether the handler's own answer counts.
func TestARefusalThatMiddlewareDropped(t *testing.T) {
	t.Parallel()
	var asked, counted int
	within := gate.RateLimit(hourly(t, 9), func(gate.Request) (string, error) {
		if asked++; asked == 1 {
			return "", gate.Refuse(http.StatusConflict, "Not now")
		}
		return "tea", nil
	}, nil)
	again := func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, message any) (any, error) {
			if answer, err := next(ctx, message); err == nil {
				return answer, nil
			}
			return next(ctx, message)
		}
	}
	count := func(int) bool { counted++; return true }
	o := &orders{create: func(context.Context, *text) (*text, error) { return nil, kerrors.Conflict("", "") }}
	a, _ := overHTTP(t, o,
		khttp.Filter(kratoslimit.Filter(gate.RateLimit(hourly(t, 9), everyone, &gate.RateLimitOptions{Count: count}))),
		khttp.Middleware(again, kratoslimit.Middleware(within)))("tea", nil)
	if a.StatusCode != http.StatusConflict || asked != 2 || counted != 1 {
		t.Errorf("got a %d, %d asked, and Count called %d times, want the handler's 409 to be counted once", a.StatusCode, asked, counted)
	}
}
