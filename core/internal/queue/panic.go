package queue

import (
	"fmt"
	"runtime/debug"
)

// panicError is a panic of the server, such as that of a client's hook, with its stack. Each caller of the batch
// panics with it: on the queue's own goroutine it would end the process.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

func (p *panicError) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// send sends a batch. After a panic it knows nothing of the server.
func (q *Queue) send(b *Batch) (r Result) {
	defer func() {
		if p := recover(); p != nil {
			err := &panicError{p, debug.Stack()}
			for _, e := range b.Entries {
				e.panicked = err
			}
			r = Ignored
		}
	}()
	return q.server.Send(b)
}
