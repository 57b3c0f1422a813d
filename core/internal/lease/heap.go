package lease

import "container/heap"

// ordered is a heap whose elements know their places, so that any of them can be removed.
type ordered[T any] struct {
	all   []T
	less  func(a, b T) bool
	place func(T) *int // where the element keeps its place plus one; 0 if it is in no heap
}

// Len, Less, Swap, Push and Pop make it a [heap.Interface].
func (o *ordered[T]) Len() int           { return len(o.all) }
func (o *ordered[T]) Less(i, j int) bool { return o.less(o.all[i], o.all[j]) }
func (o *ordered[T]) Swap(i, j int) {
	o.all[i], o.all[j] = o.all[j], o.all[i]
	*o.place(o.all[i]), *o.place(o.all[j]) = i+1, j+1
}

func (o *ordered[T]) Push(x any) {
	o.all = append(o.all, x.(T))
	*o.place(x.(T)) = len(o.all)
}

func (o *ordered[T]) Pop() any {
	last := len(o.all) - 1
	x := o.all[last]
	clear(o.all[last:])
	o.all = o.all[:last]
	*o.place(x) = 0
	return x
}

func (o *ordered[T]) add(x T) { heap.Push(o, x) }

// remove removes an element, if it is there.
func (o *ordered[T]) remove(x T) {
	if at := *o.place(x); at > 0 {
		heap.Remove(o, at-1)
	}
}

// first returns the least element. There must be one.
func (o *ordered[T]) first() T { return o.all[0] }
