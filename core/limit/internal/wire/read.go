package wire

import (
	"errors"
	"math"

	"github.com/neap-go/neap/core/internal/call"
	"github.com/neap-go/neap/core/internal/reply"
	"github.com/neap-go/neap/core/limit/internal/kind"
)

// replies returns what the script replies to a decision, for [script.Script.Replies].
func (r *Remote) replies() (number func(n int64) bool, other func(told any) bool) {
	many, first := toldOfBar*bars(r.set), r.set.Rules[0]
	for _, rule := range r.set.Rules {
		many += toldWidth(rule)
	}
	if r.Alone {
		many = first.Width
		if _, packs := first.Unpack(0); packs {
			number = reply.Any
		}
	}
	list, time := reply.List(many, reply.Any), reply.List(1, reply.Any)
	return number, func(told any) bool {
		if text, is := told.(string); is && r.Alone {
			_, ok := first.UnpackText(text)
			return ok
		}
		return list(told) && (!r.Alone || many > 2 && !r.set.Moves) || r.set.Moves && time(told)
	}
}

// read reads a decision. ok is false if a record is broken.
func (r *Remote) read(told *call.Call, cost int64, into []kind.Reading) (ok bool) {
	if numbers, place := told.Told(); numbers != nil {
		return readTold(r.set, numbers, place, cost, into)
	}
	first := r.set.Rules[0]
	if n, is := told.Int(); is {
		packed, denied := reply.Signed(n)
		into[0], ok = first.Unpack(packed)
		into[0].Denied = denied
		return ok
	}
	list := told.Reply()
	if text, is := list.(string); is {
		into[0], ok = first.UnpackText(text)
		return ok
	}
	if r.Alone {
		into[0] = readSlice(list.([]any))
		return first.Plausible(into[0])
	}
	var few [4 * kind.Few]int64
	numbers := few[:0]
	for _, number := range list.([]any) {
		numbers = append(numbers, number.(int64))
	}
	return readTold(r.set, numbers, 1, cost, into)
}

// ErrOverridden reports that the subject has other policies than its caller knows. Nothing was
// charged.
var ErrOverridden = errors.New("limit: the subject has other policies")

// unread returns why a reply cannot be read.
func (r *Remote) unread(told *call.Call) error {
	numbers, _ := told.Told()
	if list, is := told.Reply().([]any); is && numbers == nil {
		numbers = []int64{list[0].(int64)}
	}
	if len(numbers) > 0 && numbers[0] == overridden {
		return ErrOverridden
	}
	return broken(r.Script)
}

// readTold reads what limits/take.lua told of a run, for the request at that place in it,
// from 1 on.
func readTold(set *kind.Set, numbers []int64, place, cost int64, into []kind.Reading) (ok bool) {
	if numbers[0] < 0 {
		return false
	}
	bars, granted := numbers, int64(math.MaxInt64) // what the enforced policies grant
	for i, r := range set.Rules {
		if !r.Shadow {
			granted = min(granted, bars[0])
		}
		into[i] = kind.Reading{Denied: place > bars[0]}
		bars = bars[toldWidth(r):]
	}
	var few [kind.Few]bool
	barred := append(few[:0], make([]bool, len(set.Rules))...) // before this request, under each rule
	for _, b := range set.Bars {
		left, begun, with := bars[0], bars[1], bars[2]
		switch {
		case !kind.IsBan(left) || !kind.IsBan(begun):
			return false
		case left > 0:
			*b.Left(into), barred[b.Rule] = left, true
			if !b.Shadow {
				granted = 0
			}
		case begun > 0 && place >= with:
			*b.Left(into) = begun
		}
		bars = bars[toldOfBar:]
	}
	for i, r := range set.Rules {
		charged := min(granted, numbers[0])
		if barred[i] || cost <= 0 {
			charged = 0
		}
		was := into[i]
		into[i] = told(r, numbers[1:], max(charged-place, 0)*r.Units(cost), place <= charged)
		into[i].Denied, into[i].Ban, into[i].Hold = was.Denied, was.Ban, was.Hold
		if !r.Plausible(into[i]) {
			return false
		}
		numbers = numbers[toldWidth(r):]
	}
	return true
}

// told returns a reading from a policy's numbers in the reply of limits/take.lua. back is how
// many units the requests behind this one took, and charged says that the policy was charged
// for this one.
func told(r *kind.Rule, numbers []int64, back int64, charged bool) (told kind.Reading) {
	copy(told.N[:r.Width], numbers)
	told.N[r.Counted] -= back
	if r.Entries && charged {
		told.N[2] = numbers[r.Width] // the mark
	}
	return told
}

// readSlice reads the numbers of one policy.
func readSlice(numbers []any) (r kind.Reading) {
	for i, number := range numbers {
		r.N[i] = number.(int64)
	}
	r.N[0], r.Denied = reply.Signed(r.N[0])
	return r
}
