package outgoing

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/neap-go/neap/core/internal/keyspace"
)

// mostKnown bounds how many subjects a process remembers: those that refuse, and those whose
// holds Redis does not know.
const mostKnown = 16_384

// bySubject remembers something of subjects, those last that were noted last. Most processes
// remember nothing, so that costs a look at a number.
type bySubject[T any] struct {
	mu    sync.Mutex
	known atomic.Int64
	all   *simplelru.LRU[string, T]
}

func newBySubject[T any]() *bySubject[T] {
	all, err := simplelru.NewLRU[string, T](mostKnown, nil)
	if err != nil {
		panic("outgoing: " + err.Error()) // only if the size is below 1
	}
	return &bySubject[T]{all: all}
}

// find returns what is remembered of a subject.
func (b *bySubject[T]) find(subject string) (was T, known bool) {
	if b.known.Load() == 0 {
		return was, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Get(keyspace.Plain(subject))
}

// change calls next with what is remembered, and remembers what it returns, or nothing if keep
// is false.
func (b *bySubject[T]) change(subject string, next func(was T, known bool) (now T, keep bool)) {
	subject = keyspace.Plain(subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	was, known := b.all.Get(subject)
	if now, keep := next(was, known); keep {
		if !known {
			subject = strings.Clone(subject) // it may be a part of a large string
		}
		b.all.Add(subject, now)
	} else if known {
		b.all.Remove(subject)
	}
	b.known.Store(int64(b.all.Len()))
}

// refusal is the last answer of a subject that refused and did not say for how long.
type refusal struct {
	hold time.Duration // for how long the subject was put on hold
	at   time.Time
}

// next returns for how long to put a subject on hold that has refused a call which began at
// that time. It is 0 if the call began before the last refusal, which counts for it, too.
func next(of *bySubject[refusal], subject string, began time.Time, most time.Duration) (hold time.Duration) {
	of.change(subject, func(was refusal, known bool) (refusal, bool) {
		if known && began.Before(was.at) {
			return was, true
		}
		hold = min(max(2*was.hold, leastHold), most)
		return refusal{hold, time.Now()}, true
	})
	return hold
}

// accepted ends the doubling if the call began after the last refusal.
func accepted(of *bySubject[refusal], subject string, began time.Time) {
	if of.known.Load() == 0 {
		return
	}
	of.change(subject, func(was refusal, known bool) (refusal, bool) { return was, known && began.Before(was.at) })
}
