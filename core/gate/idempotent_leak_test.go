package gate_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// spelled is a text of the letters that separate the parts of requests: in paths, in
// queries, and in the gate itself.
func spelled(r *rand.Rand) string {
	const letters = `ab/?=&:%2F0123456789 "` + "\x00\n"
	b := make([]byte, r.IntN(6))
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}

// another changes a text a little.
func another(r *rand.Rand, s string) string {
	for {
		i := r.IntN(len(s) + 1)
		changed := s[:i] + spelled(r) + s[min(len(s), i+r.IntN(2)):]
		if changed != s {
			return changed
		}
	}
}

// pair makes two requests of one key that are not the same: the second has another
// principal, method, path, query or body, or two of these, where one may have what the
// other lacks. own reports whether that makes it another key.
func pair(r *rand.Rand, key string) (first, second *request, own bool) {
	first = posting(key, spelled(r))
	first.path, first.query = "/"+spelled(r), spelled(r)
	first.header["X-Account"] = []string{"a" + spelled(r)}
	second = posting(key, first.body)
	second.path, second.query, second.header["X-Account"] = first.path, first.query, first.header["X-Account"]
	change := []func(){
		func() { second.header["X-Account"] = []string{another(r, first.header["X-Account"][0]) + "."} },
		func() { second.method = "PATCH" },
		func() { second.path = "/" + another(r, first.path[1:]) },
		func() { second.query = another(r, first.query) },
		func() { second.body = another(r, first.body) },
		func() { second.header["Content-Type"] = []string{"text/plain"} },
		func() { second.query, second.body = first.query+first.body, "" },
		func() { second.path, second.query = first.path+first.query, "" },
	}
	for {
		change[r.IntN(len(change))]()
		own = second.method != first.method || second.path != first.path || second.header["X-Account"][0] != first.header["X-Account"][0]
		if own || second.query != first.query || second.body != first.body || second.header["Content-Type"] != nil {
			return first, second, own
		}
	}
}

// No request gets the answer to another one.
func TestIdempotentAnswersReachNoOtherRequest(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	guard, err := idempotency.New(storetest.At(t, server.Client(t), server.Prefix(t)), "test", idempotency.Retry{}, &idempotency.Options{
		Budget: time.Minute, Lease: 30 * time.Second, Retention: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	g := gate.Idempotent(guard, gate.ByHeader("X-Account"), nil)
	const workers = 8
	seed := redistest.Seed(t)
	pairs := max(redistest.Ops(100_000)/workers, 1)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(w)))
			for i := range pairs {
				key := fmt.Sprint(w, "-", i)
				first, second, own := pair(r, key)
				p := g.Enter(first)
				if p.Reply != nil {
					t.Errorf("%+v: got the answer %+v, want none yet", first, p.Reply)
					return
				}
				p.Leave(booked("of " + key))
				switch p := g.Enter(second); {
				case p.Reply != nil && strings.Contains(string(p.Reply.Body), "of "+key):
					t.Errorf("%+v was given the answer to %+v, want no other's answer", second, first)
				case own != (p.Reply == nil), !own && p.Reply.Status != 422:
					t.Errorf("%+v after %+v: got %+v, want 422, or none for a request of its own",
						second, first, p.Reply)
				case own:
					p.Leave(answered(403))
				}
				if i%16 == 0 {
					replays(t, g, first, 201, "of "+key)
				}
			}
		})
	}
	wg.Wait()
	want := uint64(workers * ((pairs + 15) / 16))
	if s := guard.Stats(); s.Replayed != want || s.Mismatched < uint64(2*pairs) || s.Abandoned < uint64(2*pairs) {
		t.Errorf("got %+v, want %d replayed", s, want)
	}
}

// No two requests have the same scope.
func TestIdempotencyScope(t *testing.T) {
	t.Parallel()
	seen := map[string][4]string{}
	for _, principal := range []string{"", "a", "a4:POST", "1:a", "a1:", ":", "12"} {
		for _, method := range []string{"", "POST", "4:POST", "1"} {
			for _, path := range []string{"", "/", "/a", "/a1:b", "2:/a"} {
				for _, key := range []string{"k", "1:k", "/ak", strconv.Itoa(4)} {
					parts := [4]string{principal, method, path, key}
					scope := gate.IdempotencyScope(principal, method, path, key)
					if other, ok := seen[scope]; ok {
						t.Errorf("%q and %q both have the scope %q, want two", parts, other, scope)
					}
					seen[scope] = parts
				}
			}
		}
	}
}
