// Package reply has what the replies of several scripts have in common. Its functions are
// for [script.Script.Replies].
package reply

import "slices"

// Any reports true: the script may give any whole number.
func Any(int64) bool { return true }

// From reports whether a number is at least that.
func From(least int64) func(n int64) bool {
	return func(n int64) bool { return n >= least }
}

// OneOf reports whether a number is one of these.
func OneOf(all ...int64) func(n int64) bool {
	return func(n int64) bool { return slices.Contains(all, n) }
}

// List reports whether a reply is a list of that many whole numbers, and each reports true
// for all of them.
func List(many int, each func(n int64) bool) func(reply any) bool {
	return func(reply any) bool {
		list, ok := reply.([]any)
		ok = ok && len(list) == many
		for i := 0; i < len(list) && ok; i++ { // without memory, unlike Numbers
			n, is := list[i].(int64)
			ok = is && each(n)
		}
		return ok
	}
}

// Numbers returns the elements of a list of whole numbers. ok is false if the reply is
// anything else.
func Numbers(reply any) (all []int64, ok bool) {
	list, ok := reply.([]any)
	all = make([]int64, len(list))
	for i := 0; i < len(list) && ok; i++ {
		all[i], ok = list[i].(int64)
	}
	return all, ok
}

// Signed reads a script's first number, which is -1 - n if the request was denied.
func Signed(n int64) (value int64, denied bool) {
	if n < 0 {
		return -1 - n, true
	}
	return n, false
}
