package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/console"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/examples/internal/backend"
)

// play is the program: a Redis, what is tried on it, and the page.
type play struct {
	backend *backend.Backend
	redis   *redis.Client
	wire    *wire
	traffic *traffic
	scenes  *scenes
	console http.Handler
	done    chan struct{} // closed when the program ends
}

// newPlay makes the program. A call to Redis takes the budget at most.
func newPlay(budget time.Duration) (*play, error) {
	embedded, err := backend.Embed()
	if err != nil {
		return nil, err
	}
	opts, err := redis.ParseURL(embedded.URL)
	if err != nil {
		return nil, err
	}
	p := &play{backend: embedded, wire: newWire(), done: make(chan struct{})}
	opts.ContextTimeoutEnabled, opts.Dialer = true, p.wire.dial
	p.redis = redis.NewClient(opts)
	st, err := store.Open(p.redis, &store.Options{Budget: budget})
	if err != nil {
		return nil, err
	}
	if p.traffic, err = newTraffic(st); err != nil {
		return nil, err
	}
	if p.scenes, err = newScenes(st); err != nil {
		return nil, err
	}
	anyone := func(*http.Request) bool { return true } // on this machine alone
	p.console = console.Handler(st, anyone, &console.Options{Actions: console.Primitives{
		Limiters: p.traffic.made, Lockers: []*lock.Locker{p.scenes.locker},
		Guards: []*idempotency.Guard{p.scenes.guard}, Stocks: []*stock.Stock{p.scenes.shop},
	}})
	return p, nil
}

func (p *play) close() {
	p.scenes.work(false)
	p.redis.Close()
	p.backend.Close()
}

//go:embed assets
var assets embed.FS

// handler serves the console's page with the controls above it, and the console besides.
func (p *play) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", p.console)
	mux.HandleFunc("GET /{$}", p.page)
	mux.HandleFunc("GET /play/{file}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		http.ServeFileFS(w, r, assets, "assets/"+r.PathValue("file"))
	})
	mux.HandleFunc("GET /play/events", p.stream)
	mux.HandleFunc("POST /play/do", p.do)
	return http.NewCrossOriginProtection().Handler(mux)
}

// page is the console's with the controls in it.
func (p *play) page(w http.ResponseWriter, r *http.Request) {
	whole := &buffer{ResponseWriter: w}
	p.console.ServeHTTP(whole, r)
	controls, _ := assets.ReadFile("assets/controls.html")
	text := strings.Replace(whole.text.String(), "</head>", `<link rel="stylesheet" href="play/play.css"><script type="module" src="play/play.js"></script></head>`, 1)
	text = strings.Replace(text, `<main id="main" tabindex="-1">`, `<main id="main" tabindex="-1">`+string(controls), 1)
	_, _ = w.Write([]byte(text))
}

// buffer keeps what a handler writes.
type buffer struct {
	http.ResponseWriter

	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) { return b.text.Write(p) }

// frame is what the page is told, ten times a second.
type frame struct {
	rules
	seen

	Now      int64     `json:"now"`
	Up       bool      `json:"up"`
	Requests []request `json:"requests"`
	Next     int64     `json:"next"` // the number of the request after these
	Levels   []float64 `json:"levels"`
}

func (p *play) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var next int64
	for {
		f := frame{Levels: p.traffic.levels(r.Context()), seen: p.scenes.look()}
		f.rules, _ = p.traffic.chosen()
		f.Now, f.Up = p.traffic.now(), p.wire.up() // now that the levels are known, which may have taken a while
		f.Requests, next = p.traffic.since(next)
		f.Next = next
		text, err := json.Marshal(f)
		if err != nil {
			return
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil || control.Flush() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-p.done:
			return
		}
	}
}

// do is what the controls do.
func (p *play) do(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Do    string `json:"do"`
		On    bool   `json:"on"`
		Rules rules  `json:"rules"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&asked); err != nil {
		http.Error(w, "not JSON", http.StatusBadRequest)
		return
	}
	background := context.WithoutCancel(r.Context())
	switch asked.Do {
	case "rules":
		if err := p.traffic.choose(asked.Rules); err != nil {
			http.Error(w, "such a policy cannot be", http.StatusBadRequest)
			return
		}
	case "burst":
		for range 10 {
			go p.traffic.ask(background)
		}
	case "reset":
		p.traffic.reset(background)
	case "redis":
		p.wire.set(asked.On)
	case "work":
		p.scenes.work(asked.On)
	case "repeat":
		p.scenes.repeat()
	case "sell":
		go p.scenes.sell(background)
	default:
		http.Error(w, "unknown", http.StatusNotFound)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
