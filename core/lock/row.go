package lock

// row is a list of waiters. To join it and to leave it costs the same however many there
// are.
type row struct {
	first, last *waiter
	n           int
}

// neighbours are the waiters before and after one in a row.
type neighbours struct{ before, after *waiter }

// A waiter is in two rows.
const (
	inAll = iota
	inQueue
)

func (r *row) add(w *waiter, in int) {
	w.beside[in].before = r.last
	if r.last == nil {
		r.first = w
	} else {
		r.last.beside[in].after = w
	}
	r.last = w
	r.n++
}

func (r *row) remove(w *waiter, in int) {
	beside := w.beside[in]
	if beside.before == nil {
		r.first = beside.after
	} else {
		beside.before.beside[in].after = beside.after
	}
	if beside.after == nil {
		r.last = beside.before
	} else {
		beside.after.beside[in].before = beside.before
	}
	w.beside[in] = neighbours{}
	r.n--
}

// row returns the row of a queue, or nil if there is none.
func (e *entry) row(queue string) *row {
	if queue == "" {
		return &e.unnamed
	}
	return e.named[queue]
}

// first returns the first waiter of a queue, or nil if there is none.
func (e *entry) first(queue string) *waiter {
	if r := e.row(queue); r != nil {
		return r.first
	}
	return nil
}

func (e *entry) add(w *waiter) {
	r := e.row(w.queue)
	if r == nil {
		if e.named == nil {
			e.named = map[string]*row{}
		}
		r = new(row)
		e.named[w.queue] = r
	}
	e.waiting.add(w, inAll)
	r.add(w, inQueue)
}

func (e *entry) remove(w *waiter) {
	e.waiting.remove(w, inAll)
	r := e.row(w.queue)
	if r.remove(w, inQueue); r.n == 0 {
		delete(e.named, w.queue)
	}
}
