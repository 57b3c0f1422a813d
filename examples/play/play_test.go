package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) {
	logging.Disable()
	redistest.Main(m)
}

// page is the program, as a browser has it.
type page struct {
	play   *play
	url    string
	client *http.Client // of its own: an httptest.Server that closes ends the idle connections of http.DefaultTransport
}

func open(t *testing.T) *page {
	t.Helper()
	p, err := newPlay(2 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p.handler())
	t.Cleanup(func() {
		close(p.done)
		server.Close()
		p.close()
	})
	if err := p.traffic.choose(rules{Limit: 10, Window: 5}); err != nil { // no request but those of the test
		t.Fatal(err)
	}
	go p.traffic.send(p.done)
	return &page{p, server.URL, server.Client()}
}

// TestATakenAddress: the error says how to name another.
func TestATakenAddress(t *testing.T) {
	t.Parallel()
	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	err := serve(t.Context(), taken.Listener.Addr().String(), time.Second)
	if err == nil || !strings.Contains(err.Error(), "-addr") || !strings.Contains(err.Error(), "ADDR") {
		t.Errorf("play on an address that is taken: got %v, want an error that names -addr and ADDR", err)
	}
}

func (p *page) do(t *testing.T, order string) {
	t.Helper()
	r, err := p.client.Post(p.url+"/play/do", "application/json", strings.NewReader(order))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusNoContent {
		t.Fatalf("%s: got %s, want 204", order, r.Status)
	}
}

// await reads frames until one is as it should be.
func (p *page) await(t *testing.T, what string, is func(frame) bool) {
	t.Helper()
	r, err := p.client.Get(p.url + "/play/events")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var f frame
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 1<<20)
	for began := time.Now(); time.Since(began) < time.Minute && lines.Scan(); {
		data, event := strings.CutPrefix(lines.Text(), "data: ")
		if !event {
			continue
		}
		f = frame{} // its slices are kept
		if err := json.Unmarshal([]byte(data), &f); err != nil {
			t.Fatal(err)
		}
		if is(f) {
			return
		}
	}
	t.Errorf("%s: got %+v at last, want it so within a minute", what, f)
}

func TestThePageHasBoth(t *testing.T) {
	t.Parallel()
	p := open(t)
	for path, wants := range map[string][]string{
		"/":                 {`<script type="module" src="page.js">`, `src="play/play.js"`, `id="algorithms"`, `id="limits"`},
		"/console/":         {`id="limits"`},
		"/page.js":          {"EventSource"},
		"/play/play.js":     {"EventSource"},
		"/play/drawing.js":  {"bucket"},
		"/play/play.css":    {".vessel"},
		"/play/nothing.css": {"404"},
	} {
		r, err := p.client.Get(p.url + path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(r.Body)
		r.Body.Close()
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: got %s %.200q, want %q in it", path, r.Status, text, want)
			}
		}
	}
}

// TestTheScenes: five copies of one payment charge once, of a hundred buyers ten have a chair, one of ten workers holds the lock.
func TestTheScenes(t *testing.T) {
	t.Parallel()
	p := open(t)
	count := func(all []string, what string) (n int) {
		for _, one := range all {
			if one == what {
				n++
			}
		}
		return n
	}
	p.do(t, `{"do":"repeat"}`)
	p.await(t, "one key sent five times", func(f frame) bool {
		return f.Charges == 1 && count(f.Copies, "ran") == 1 && count(f.Copies, "again") > 0 && count(f.Copies, "again")+count(f.Copies, "failed") == copies-1
	})
	p.do(t, `{"do":"sell"}`)
	p.await(t, "a hundred buyers", func(f frame) bool {
		return f.Left == 0 && count(f.Buyers, "sold") == chairs && count(f.Buyers, "refused")+count(f.Buyers, "failed") == buyers-chairs
	})
	p.do(t, `{"do":"work","on":true}`)
	p.await(t, "ten workers", func(f frame) bool {
		holding := 0
		for _, w := range f.Workers {
			if w.State == "holding" {
				holding++
			}
		}
		if holding > 1 {
			t.Errorf("got %d workers with the lock, want one", holding)
		}
		return holding == 1
	})
	p.do(t, `{"do":"work","on":false}`)
	p.await(t, "workers at rest", func(f frame) bool {
		for _, w := range f.Workers {
			if w.State != "resting" {
				return false
			}
		}
		return true
	})
}

// TestTheTraffic: each algorithm admits its limit of a burst, and while Redis is stopped each mode does as it says.
func TestTheTraffic(t *testing.T) {
	t.Parallel()
	p := open(t)
	p.do(t, `{"do":"rules","rules":{"limit":5,"window":60,"rate":0}}`)
	p.do(t, `{"do":"burst"}`)
	var burst []request
	p.await(t, "a burst of ten under a limit of five", func(f frame) bool {
		burst = append(burst, f.Requests...)
		granted := make([]int, len(algorithms)+len(modes))
		for _, r := range burst {
			for i, got := range r.Got {
				if got == "granted" {
					granted[i]++
				}
			}
		}
		// On a busy machine Redis may not decide all of them in time.
		decided := !slices.ContainsFunc(burst, func(r request) bool { return r.Degraded || slices.Contains(r.Got, "failed") })
		for i, n := range granted {
			if len(burst) == 10 && n != 5 && decided {
				t.Errorf("limiter %d of a burst of ten under a limit of five: got %d granted of %+v, want 5", i, n, burst)
			}
		}
		return len(burst) == 10
	})
	p.do(t, `{"do":"redis","on":false}`)
	p.do(t, `{"do":"rules","rules":{"limit":5,"window":60,"rate":20}}`)
	seen, skip := map[string]bool{}, len(burst)
	p.await(t, "Redis is stopped", func(f frame) bool {
		requests := f.Requests[min(skip, len(f.Requests)):]
		skip = 0
		for _, r := range requests {
			for i, mode := range modes {
				seen[mode.name+" "+r.Got[len(algorithms)+i]] = true
			}
		}
		return !f.Up && seen["local denied"] && seen["open granted"] && seen["closed failed"]
	})
	if seen["open denied"] || seen["open failed"] || seen["closed granted"] || seen["local failed"] {
		t.Errorf("while Redis was stopped: got %v, want FailOpen to grant all, FailClosed none, and FailLocal to fail none", seen)
	}
	p.do(t, `{"do":"redis","on":true}`)
	p.await(t, "Redis is back", func(f frame) bool {
		if len(f.Requests) == 0 {
			return false
		}
		last := f.Requests[len(f.Requests)-1]
		return f.Up && !last.Degraded && last.Got[len(last.Got)-1] == "denied"
	})
}

// TestOthersCannotControlIt: another site's page may not send an order, and what is no order changes nothing.
func TestOthersCannotControlIt(t *testing.T) {
	t.Parallel()
	p := open(t)
	for order, want := range map[string]int{`{"do":"redis"}`: 403, `{"do":"nothing"}`: 404, `{`: 400} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/play/do", strings.NewReader(order))
		if want == 403 {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}
		got, err := p.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if got.StatusCode != want {
			t.Errorf("%s: got %s, want %d", order, got.Status, want)
		}
	}
	if !p.play.wire.up() {
		t.Error("got Redis stopped, want it to go on")
	}
}
