package labels

import (
	"sync"

	"github.com/neap-go/neap/core/store"
)

// Outages know which servers are lost. The zero Outages are ready to use and safe for concurrent use.
type Outages struct {
	mu   sync.Mutex
	lost map[string]bool
}

// Note notes the event of a server.
func (o *Outages) Note(e *store.Event) {
	if e.Primitive != store.Server {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.Outcome != store.Lost {
		delete(o.lost, e.Name)
		return
	}
	if o.lost == nil {
		o.lost = map[string]bool{}
	}
	o.lost[e.Name] = true
}

// Answers reports whether no call to a server is held back and it is not lost. A server that was not asked for the last
// minute counts as not lost.
func (o *Outages) Answers(g *store.Gauge) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !g.Open && (g.Failing == 0 || !o.lost[g.Name])
}
