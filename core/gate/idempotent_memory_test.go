package gate_test

import (
	"io"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/gatehttp"
)

// arriving is a body that comes from a connection, so nothing else keeps it in memory.
type arriving struct{ left int }

func (a *arriving) Read(p []byte) (int, error) {
	if a.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), a.left, 4096)
	a.left -= n
	return n, nil
}

// served is a request as the adapters on net/http make it.
type served struct{ gatehttp.Request }

func (served) Route() string       { return "" }
func (served) Param(string) string { return "" }

// The bodies of concurrent requests are each kept in memory once.
func TestIdempotentMemory(t *testing.T) { //nolint:paralleltest // it measures the heap
	const requests, limit = 50, 1 << 20
	guard, _ := guards(t, idempotency.Options{Budget: time.Minute, Lease: 3 * time.Minute}) // fifty hash at once
	g := gate.Idempotent(guard, everyone, &gate.IdempotentOptions{MaxBody: limit, Key: gate.ByHeader("X-Key")})
	for _, declared := range []int64{limit, -1} {
		var before, while runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		passes := make([]gate.Pass, requests)
		held := make([]*http.Request, requests)
		var wg sync.WaitGroup
		for i := range requests {
			r, err := http.NewRequest("POST", "/orders", &arriving{limit})
			if err != nil {
				t.Fatal(err)
			}
			r.ContentLength, r.RequestURI = declared, "/orders"
			r.Header.Set("X-Key", string(rune('!'+i))+http.MethodPost+string(rune('0'-declared%2)))
			held[i] = r
			wg.Go(func() { passes[i] = g.Enter(served{gatehttp.Request{HTTP: r}}) })
		}
		wg.Wait()
		runtime.ReadMemStats(&while)
		peak := while.HeapInuse - before.HeapInuse
		runtime.GC()
		runtime.ReadMemStats(&while)
		each := float64(while.HeapAlloc-before.HeapAlloc) / requests / limit
		t.Logf("declared %d: %.2f × the limit a request held, %.2f in use before a collection, %.2f allocated in all",
			declared, each, float64(peak)/requests/limit, float64(while.TotalAlloc-before.TotalAlloc)/requests/limit)
		if each > 1.5 || each < 1 {
			t.Errorf("declared %d: got %.2f × the limit held by a request, want 1 to 1.5", declared, each)
		}
		for i, p := range passes {
			if p.Reply != nil {
				t.Fatalf("got %+v, want the request admitted", p.Reply)
			}
			if n, err := io.Copy(io.Discard, held[i].Body); n != limit || err != nil {
				t.Errorf("the handler reads %d bytes, %v, want %d", n, err, limit)
			}
			p.Leave(answered(204))
		}
	}
}
