package lock_test

import (
	"errors"
	"fmt"

	"github.com/anishathalye/porcupine"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/history"
)

// The model is of one key. Nothing in it expires, and so the leases of a
// history outlive it.

// verb is what an operation of a history does.
type verb string

const (
	acquires verb = "acquire"
	extends  verb = "extend"
	releases verb = "release"
	forces   verb = "force"
	inspects verb = "inspect"

	// What nobody was told of, and happens at any time after the call, or never:
	// then it comes behind the end, which is behind all that was told.
	mayAcquire verb = "may acquire"
	mayRelease verb = "may release"
	mayForce   verb = "may force"
	ends       verb = "end"
)

// asked is the operation's input; hold is the number of the acquisition that
// it is about.
type asked struct {
	verb verb
	key  string
	hold int
}

func (a asked) OfKey() string { return a.key }

// told is the operation's output.
type told struct {
	err   error // nil, ErrHeld, ErrLost or ErrTakenByOther
	fence int64 // of acquire and inspect
	held  bool  // of force and inspect
}

// standing is the model's state. The fence is the last that was seen, or one
// more for each grant of which nobody was told the fence.
type standing struct {
	hold  int // 0 where the lock is free
	fence int64
	over  bool
}

var model = porcupine.Model{
	Partition: history.ByKey,
	Init:      func() any { return standing{} },
	Step: func(state, input, output any) (bool, any) {
		return state.(standing).step(input.(asked), output.(told))
	},
	DescribeOperation: func(input, output any) string {
		a, o := input.(asked), output.(told)
		return fmt.Sprintf("%s #%d: %v, fence %d, held %v", a.verb, a.hold, o.err, o.fence, o.held)
	},
}

func (s standing) step(a asked, o told) (legal bool, next standing) {
	mine, free := s.hold == a.hold, s.hold == 0
	next = s
	switch a.verb {
	case acquires:
		if o.err != nil {
			return !free && !mine, s
		}
		// A hold may have been granted by the call whose reply was lost.
		next.hold, next.fence = a.hold, o.fence
		return free && o.fence > s.fence || mine && o.fence >= s.fence, next
	case extends, releases:
		if o.err == nil {
			if a.verb == releases {
				next.hold = 0
			}
			return mine, next
		}
		return !mine && (s.fence > o.fence || !errors.Is(o.err, lock.ErrTakenByOther)), s
	case forces:
		next.hold = 0
		return o.held == !free, next
	case inspects:
		next.fence = o.fence
		return o.held == !free && o.fence >= s.fence, next
	case mayAcquire:
		next.hold, next.fence = a.hold, s.fence+1
		return free || s.over, next
	case mayRelease:
		next.hold = 0
		return mine || s.over, next
	case mayForce:
		next.hold = 0
		return !free || s.over, next
	}
	next.over = true
	return true, next
}

// isUnknown says of an error that Redis did not confirm the call.
func isUnknown(err error) bool {
	_, ok := errors.AsType[*script.Error](err)
	return ok
}

// end stands behind all that was told of a key.
func end(key string) (input, output any) { return asked{verb: ends, key: key}, told{} }
