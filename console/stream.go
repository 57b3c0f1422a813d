package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	each     = 500 * time.Millisecond // so that an event is seen within a second
	lasts    = time.Minute            // a stream; then the page opens another, and allow is asked
	patience = 10 * time.Second       // with a client that does not read
)

// frame is what an open page is told: what has happened since the last frame, and the gauges.
type frame struct {
	// From is the first second that the frame is about, and Now the one under way. The first frame of a
	// stream is about all that are shown.
	From  int64 `json:"from"`
	Now   int64 `json:"now"`
	Shown int64 `json:"shown"`
	// Process is the one that the page shows: in the first frame of a stream.
	Process *process `json:"process,omitempty"`
	// Things are those that may be looked up and acted upon: in the first frame of a stream.
	Things []offer `json:"things,omitempty"`
	Lines  []line  `json:"lines"`
	Gauges []gauge `json:"gauges"`
}

func (c *console) frame(from, now int64) frame {
	return frame{From: from, Now: now, Shown: shown, Lines: c.timeline.read(from, now), Gauges: c.gauges.read(c)}
}

// room bounds how many streams there are at once.
type room struct {
	most int64
	open atomic.Int64
}

func (r *room) enter() bool {
	if r.open.Add(1) > r.most {
		r.leave()
		return false
	}
	return true
}

func (r *room) leave() { r.open.Add(-1) }

// stream sends frames as server-sent events, on the goroutine of the request.
func (c *console) stream(w http.ResponseWriter, r *http.Request) {
	if !reads(w, r) {
		return
	}
	asPost := *r // which is checked for its origin: a page of another one could hold all streams
	asPost.Method = http.MethodPost
	if http.NewCrossOriginProtection().Check(&asPost) != nil {
		http.Error(w, "forbidden", http.StatusForbidden)
		return
	}
	if !c.room.enter() {
		w.Header().Set("Retry-After", strconv.Itoa(int(lasts/time.Second)))
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	defer c.room.leave()
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would hold frames back
	if r.Method == http.MethodHead {
		return
	}
	control := http.NewResponseController(w)
	tick := time.NewTicker(each)
	defer tick.Stop()
	end := time.NewTimer(lasts)
	defer end.Stop()
	shutdown := c.shutdown(r)
	now := c.timeline.now()
	f := c.frame(now-shown+1, now)
	f.Things, f.Process = c.things.offers(), thisProcess()
	fmt.Fprint(w, "retry: 1000\n\n")
	for {
		text, err := json.Marshal(f)
		if err != nil {
			return
		}
		_ = control.SetWriteDeadline(time.Now().Add(patience)) // the server's may be shorter than a stream
		if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil || control.Flush() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-end.C:
			return
		case <-r.Context().Done():
			return
		case <-shutdown:
			return
		}
		f = c.frame(f.Now, c.timeline.now()) // that second was not over
	}
}

// shutdown is closed when the server of the request shuts down, which waits for requests.
func (c *console) shutdown(r *http.Request) <-chan struct{} {
	server, is := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !is {
		return nil
	}
	begins := make(chan struct{})
	first, loaded := c.servers.LoadOrStore(server, begins)
	if !loaded {
		server.RegisterOnShutdown(sync.OnceFunc(func() { close(begins) })) // each call of Shutdown runs it
	}
	return first.(chan struct{})
}
