package neaptest

import (
	"math"
	"net"
	"regexp"
	"sync"
	"time"
)

// forever is a wait that only a change of the scene ends.
const forever = time.Duration(math.MaxInt64)

// link is one connection. It stands between a client and the server and carries what they
// write when the scene lets it.
type link struct {
	near *noted   // to the client
	far  net.Conn // to the server

	greeted bool // the client has sent more than its greeting; under the mutex of the Redis
}

// greeting is what go-redis sends before the first command. It holds a mutex of its Pub/Sub until it has
// the answer. So no scene may hold that: in a bubble, time stands still while a goroutine waits for a mutex.
var greeting = regexp.MustCompile(`^\*\d+\r\n\$\d+\r\n(?i:HELLO|CLIENT)\r\n`)

// end has both ends find the connection closed. What is on its way is dropped.
func (l *link) end() {
	_ = l.near.Close()
	_ = l.far.Close()
}

// carry hands on what one end writes to the other, in its order. It reads without pause, as
// the kernels between two processes do, so that neither end waits for the other. What was
// written before an end was closed still arrives.
func carry(from, to net.Conn, wait func(chunk) (time.Duration, <-chan struct{})) {
	var q queue
	q.some = sync.NewCond(&q.mu)
	go q.fill(from)
	for {
		c, ok := q.next()
		if !ok {
			_ = to.Close()
			return
		}
		await(c, wait)
		_, _ = to.Write(c.bytes) // if that end is closed, what is behind is read and dropped
	}
}

// await waits until a chunk may go on.
func await(c chunk, wait func(chunk) (time.Duration, <-chan struct{})) {
	for {
		left, changed := wait(c)
		if left <= 0 {
			return
		}
		var over <-chan time.Time
		if left < forever {
			over = time.After(left)
		}
		select {
		case <-over:
		case <-changed:
		}
	}
}

// queue is what was written and not handed on yet.
type queue struct {
	mu     sync.Mutex
	some   *sync.Cond
	chunks []chunk
	ended  bool
}

type chunk struct {
	bytes []byte
	since time.Time
}

// fill reads until the connection is closed.
func (q *queue) fill(from net.Conn) {
	for {
		p := make([]byte, 4096)
		n, err := from.Read(p)
		q.mu.Lock()
		if n > 0 {
			q.chunks = append(q.chunks, chunk{p[:n], time.Now()})
		}
		q.ended = err != nil
		q.mu.Unlock()
		q.some.Signal()
		if err != nil {
			return
		}
	}
}

// next waits for the next chunk. It returns false if there will be none.
func (q *queue) next() (chunk, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.chunks) == 0 && !q.ended {
		q.some.Wait()
	}
	if len(q.chunks) == 0 {
		return chunk{}, false
	}
	c := q.chunks[0]
	q.chunks = q.chunks[1:]
	return c, true
}
