package line

import "github.com/neap-go/neap/core/limit/internal/kind"

// order has the waiters of a queue in the order in which they came, and the sums of their
// costs. Each method takes O(log n), but for compact, which is called after n removals.
type order struct {
	waiters []*Waiter     // nil in place of one that has left
	sums    []kind.Wanted // a Fenwick tree: sums[i] is the sum from i&(i+1) to i
	head    int           // the first waiter that has not left
	left    int           // how many have not left
}

func (o *order) add(w *Waiter) {
	w.at = len(o.waiters)
	sum := kind.Wants(w.cost)
	for i := w.at - 1; i >= w.at&(w.at+1); i = i&(i+1) - 1 {
		sum = sum.Plus(o.sums[i])
	}
	o.waiters, o.sums = append(o.waiters, w), append(o.sums, sum)
	o.left++
}

// first returns the first waiter, or nil if there is none.
func (o *order) first() *Waiter {
	if o.left == 0 {
		return nil
	}
	return o.waiters[o.head]
}

// before returns what the waiters before an index ask for together.
func (o *order) before(at int) (sum kind.Wanted) {
	for i := at - 1; i >= 0; i = i&(i+1) - 1 {
		sum = sum.Plus(o.sums[i])
	}
	return sum
}

// clear makes the cost of a waiter count no more.
func (o *order) clear(w *Waiter) {
	less := kind.Wanted{Permits: -w.cost, Requests: -min(w.cost, 1)}
	for i := w.at; i < len(o.sums); i |= i + 1 {
		o.sums[i] = o.sums[i].Plus(less)
	}
	w.cost = 0
}

// remove reports whether the order was made compact, so that each index changed.
func (o *order) remove(w *Waiter) (compacted bool) {
	o.clear(w)
	o.waiters[w.at] = nil
	o.left--
	for o.head < len(o.waiters) && o.waiters[o.head] == nil {
		o.head++
	}
	if gone := len(o.waiters) - o.left; gone < o.left+64 {
		return false
	}
	o.compact()
	return true
}

func (o *order) compact() {
	all := o.waiters[o.head:]
	*o = order{waiters: make([]*Waiter, 0, 2*o.left), sums: make([]kind.Wanted, 0, 2*o.left)}
	for _, w := range all {
		if w != nil {
			o.add(w)
		}
	}
}
