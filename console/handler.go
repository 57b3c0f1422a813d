package console

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"runtime"
	"strings"
	"sync"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// Options are the options of [Handler]. The zero value is a page that shows figures alone.
type Options struct {
	// LookUp are the primitives whose subjects, keys or items may be looked up. Each look-up
	// costs what Peek, InFlight, Inspect or Left costs, and changes nothing. That of a limiter with a
	// Ban costs what Banned costs too: one more round trip.
	LookUp Primitives
	// Actions are the primitives that may be acted upon: reset, ban and unban a subject of a
	// limiter; force a lock; resolve and forget a key of a guard; restock an item. What may be acted upon may
	// be looked up too. Each action asks for confirmation. If some operators may look and others may act,
	// mount two handlers.
	Actions Primitives
	// Acted hears of each action that was asked for, with its outcome, before the answer is sent. The error is nil also
	// if there was nothing to act upon. It is for an audit log, must be safe for concurrent use, and its panic
	// propagates to the request. Nil hears nothing.
	Acted func(r *http.Request, a Action, err error)
	// MaxStreams is how many pages may be open at once; 0 means DefaultMaxStreams. A further page is answered with
	// a 503 and a Retry-After; it says so and tries again. An open page takes some 0.2 MB.
	MaxStreams int
}

// DefaultMaxStreams is how many pages may be open at once if Options.MaxStreams is 0.
const DefaultMaxStreams = 50

// console is the handler.
type console struct {
	allow     func(*http.Request) bool
	store     *store.Store
	timeline  *timeline
	gauges    gauges
	room      room
	things    things
	acted     func(*http.Request, Action, error)
	endpoints map[string]http.Handler // by the last element of the path
	servers   sync.Map                // *http.Server to the channel that its Shutdown closes
}

//go:embed assets
var embedded embed.FS

// The types of the assets: what the system says of endings may be wrong.
var types = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}

// policy is the page's Content-Security-Policy: its own files alone, and in no frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

// Handler returns a handler of the page and of its data. Mount it under any path that ends
// in a slash, also behind http.StripPrefix.
//
// The client or store is the one that the primitives were made on. allow says of each request whether its
// sender may see the page and use what the Options offer; whoever may not is answered with a 403. allow must
// be safe for concurrent use. An open page is one request of a minute at most, then another, so that allow
// is asked again. The page needs a writer that can flush; with one that cannot, it asks each second.
//
// Handler observes the store for as long as it is in use. That costs each event a fraction of a microsecond, and 600 kB
// at most.
//
// It panics at wiring if the client is unusable, if allow is nil, and if the Options have a nil or
// zero primitive, two of one kind and name, or a MaxStreams below 0. Nil options are the zero Options, and options are
// copied. The handler is safe for concurrent use.
func Handler(rdb script.Client, allow func(*http.Request) bool, opts *Options) http.Handler {
	st, err := store.Of(rdb)
	var own Options
	if opts != nil {
		own = *opts
	}
	if allow == nil {
		err = errors.Join(err, errors.New("allow is nil: pass a function that says who may see the page"))
	}
	if own.MaxStreams < 0 {
		err = errors.Join(err, fmt.Errorf("MaxStreams is %d: use 1 or more, or 0 for %d", own.MaxStreams, DefaultMaxStreams))
	}
	things, fault := own.things()
	if err := errors.Join(err, fault); err != nil {
		panic(fmt.Errorf("console.Handler: %w", err))
	}
	c := &console{allow: allow, store: st, timeline: newTimeline(), things: things, acted: own.Acted}
	c.room.most = int64(cmp.Or(own.MaxStreams, DefaultMaxStreams))
	post := http.NewCrossOriginProtection().Handler
	c.endpoints = map[string]http.Handler{
		"":       http.HandlerFunc(c.page),
		"events": http.HandlerFunc(c.stream),
		"lookup": post(http.HandlerFunc(c.lookUp)),
		"act":    post(http.HandlerFunc(c.act)),
	}
	files, _ := fs.Glob(embedded, "assets/*.*")
	for _, file := range files {
		if typ, is := types[path.Ext(file)]; is {
			c.endpoints[path.Base(file)] = asset(file, typ)
		}
	}
	runtime.AddCleanup(c, func(remove func()) { remove() }, st.Observe(c.timeline.observe))
	return c
}

// ServeHTTP knows no prefix: the last element of the path says what is asked for.
func (c *console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Frame-Options", "DENY")
	c.shutdown(r) // notes the server before allow, in which its Shutdown may begin
	if !c.allow(r) {
		http.Error(w, "forbidden", http.StatusForbidden)
		return
	}
	if r.URL.Path == "" { // a prefix was stripped, and the slash behind it is missing
		h.Set("Location", path.Base(mounted(r))+"/")
		w.WriteHeader(http.StatusPermanentRedirect)
		return
	}
	_, last := path.Split(r.URL.Path)
	endpoint, is := c.endpoints[last]
	if !is {
		http.NotFound(w, r)
		return
	}
	endpoint.ServeHTTP(w, r)
}

// mounted is the path before anything was stripped.
func mounted(r *http.Request) string {
	target, _, _ := strings.Cut(r.RequestURI, "?")
	return target
}

// reads reports whether the method is one that reads, and answers what is not.
func reads(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	return false
}

func (c *console) page(w http.ResponseWriter, r *http.Request) {
	if !reads(w, r) {
		return
	}
	text, _ := embedded.ReadFile("assets/index.html")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(bytes.Replace(text, []byte(`lang="en"`), []byte(`lang="`+language(r)+`"`), 1))
}

func asset(file, typ string) http.Handler {
	text, _ := embedded.ReadFile(file)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !reads(w, r) {
			return
		}
		w.Header().Set("Content-Type", typ)
		_, _ = w.Write(text)
	})
}
