package cells

import (
	"container/heap"
	"strings"

	"github.com/neap-go/neap/core/limit/internal/kind"
)

// bansByEnd are the records of bans that a process knows of, at most room of them. If
// there are more, the ban that ends soonest is forgotten, so one that has ended goes
// before any that lasts. It is not safe for concurrent use.
type bansByEnd struct {
	room  int
	byKey map[stateKey]*banEntry
	ends  byEnd
}

type banEntry struct {
	key stateKey
	rec *kind.Record
	end int64 // as it was when the record was put
	at  int   // its index in ends
}

func (b *bansByEnd) len() int { return len(b.ends) }

// get returns the record of a key, or nil. If you change it, put it again.
func (b *bansByEnd) get(key stateKey) *kind.Record {
	if e := b.byKey[key]; e != nil {
		return e.rec
	}
	return nil
}

// put stores a record under a key.
func (b *bansByEnd) put(key stateKey, rec *kind.Record) {
	if e := b.byKey[key]; e != nil {
		e.rec, e.end = rec, rec.Last
		heap.Fix(&b.ends, e.at)
		return
	}
	key.subject = strings.Clone(key.subject) // it may be a part of a large string
	e := &banEntry{key: key, rec: rec, end: rec.Last}
	b.byKey[key] = e
	heap.Push(&b.ends, e)
	if len(b.ends) > b.room {
		delete(b.byKey, heap.Pop(&b.ends).(*banEntry).key) //nolint:forcetypeassert // it has nothing else
	}
}

func (b *bansByEnd) remove(key stateKey) {
	if e := b.byKey[key]; e != nil {
		heap.Remove(&b.ends, e.at)
		delete(b.byKey, key)
	}
}

// byEnd is a heap of records: the first is the one whose ban ends soonest.
type byEnd []*banEntry

func (b *byEnd) Len() int           { return len(*b) }
func (b *byEnd) Less(i, j int) bool { return (*b)[i].end < (*b)[j].end }

func (b *byEnd) Swap(i, j int) {
	all := *b
	all[i], all[j] = all[j], all[i]
	all[i].at, all[j].at = i, j
}

func (b *byEnd) Push(e any) {
	entry := e.(*banEntry) //nolint:forcetypeassert // see put
	entry.at = len(*b)
	*b = append(*b, entry)
}

func (b *byEnd) Pop() any {
	last := len(*b) - 1
	e := (*b)[last]
	(*b)[last] = nil
	*b = (*b)[:last]
	return e
}
