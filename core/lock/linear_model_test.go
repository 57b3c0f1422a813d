package lock_test

import (
	"errors"
	"fmt"

	"github.com/anishathalye/porcupine"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/history"
)

// The model describes one key. Nothing in it expires, so the leases of a history are
// longer than the history.

// verb is what an operation of a history does.
type verb string

const (
	acquires verb = "acquire"
	extends  verb = "extend"
	releases verb = "release"
	forces   verb = "force"
	inspects verb = "inspect"

	// These operations have no answer. Each may happen at any time after the call, or
	// never. In the latter case the checker puts it after the operation end, which comes
	// after all answers.
	mayAcquire verb = "may acquire"
	mayRelease verb = "may release"
	mayForce   verb = "may force"
	ends       verb = "end"
)

// asked is the input of an operation; hold is the number of the acquisition that it is
// about.
type asked struct {
	verb verb
	key  string
	hold int
}

func (a asked) OfKey() string { return a.key }

// told is the output of an operation.
type told struct {
	err   error // nil, ErrHeld, ErrLost or ErrTakenByOther
	fence int64 // of acquire and inspect only
	held  bool  // of force and inspect only
	stood bool  // of acquire: somebody waited for the key by then, and may have been in line
}

// standing is the model's state. Its fence is the last that was reported, or one more for
// each grant whose fence was not reported.
type standing struct {
	hold     int // 0 if the lock is free
	fence    int64
	released bool // it is free since a release, so it may wait for the first in line
	over     bool
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
			return (!free || s.released && o.stood) && !mine, s
		}
		// The call whose reply was lost may have granted the hold.
		next.hold, next.fence, next.released = a.hold, o.fence, false
		return free && o.fence > s.fence || mine && o.fence >= s.fence, next
	case extends, releases:
		if o.err == nil {
			if a.verb == releases {
				next.hold, next.released = 0, true
			}
			return mine, next
		}
		return !mine && (s.fence > o.fence || !errors.Is(o.err, lock.ErrTakenByOther)), s
	case forces:
		next.hold, next.released = 0, free && s.released
		return o.held == !free, next
	case inspects:
		next.fence = o.fence
		return o.held == !free && o.fence >= s.fence, next
	case mayAcquire:
		next.hold, next.fence, next.released = a.hold, s.fence+1, false
		return free || s.over, next
	case mayRelease:
		next.hold, next.released = 0, true
		return mine || s.over, next
	case mayForce:
		next.hold, next.released = 0, free && s.released
		return !free || s.over, next
	}
	next.over = true
	return true, next
}

// isUnknown reports whether err says that Redis did not confirm the call.
func isUnknown(err error) bool {
	_, ok := errors.AsType[*script.Error](err)
	return ok
}

// end adds the operation that comes after all answers about a key.
func end(key string) (input, output any) { return asked{verb: ends, key: key}, told{} }
