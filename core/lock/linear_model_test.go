package lock_test

import (
	"errors"
	"fmt"
	"math"

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
	at   int64 // of acquire: when it was called
}

func (a asked) OfKey() string { return a.key }

// told is the output of an operation.
type told struct {
	err   error // nil, ErrHeld, ErrLost or ErrTakenByOther
	fence int64 // of acquire and inspect only
	held  bool  // of force and inspect only
	stood bool  // of acquire: somebody waited for the key by then, and may have been in line
	by    int64 // of release: by when it was done; 0 if that is unknown
}

// standing is the model's state. Its fence is the last that was reported, or one more for
// each grant whose fence was not reported.
type standing struct {
	hold  int // 0 if the lock is free
	fence int64
	until int64 // how long it may wait for the first in line, if it is free since a release
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

// waits returns how long a lock may wait for the first in line after a release.
func (o told) waits() int64 {
	if o.by == 0 {
		return math.MaxInt64
	}
	return o.by + lock.Waits.Nanoseconds()
}

func (s standing) step(a asked, o told) (legal bool, next standing) {
	mine, free := s.hold == a.hold, s.hold == 0
	next = s
	switch a.verb {
	case acquires:
		if o.err != nil {
			return (!free || a.at < s.until && o.stood) && !mine, s
		}
		// The call whose reply was lost may have granted the hold.
		next.hold, next.fence, next.until = a.hold, o.fence, 0
		return free && o.fence > s.fence || mine && o.fence >= s.fence, next
	case extends, releases:
		if o.err == nil {
			if a.verb == releases {
				next.hold, next.until = 0, o.waits()
			}
			return mine, next
		}
		return !mine && (s.fence > o.fence || !errors.Is(o.err, lock.ErrTakenByOther)), s
	case forces:
		if next.hold = 0; !free {
			next.until = 0
		}
		return o.held == !free, next
	case inspects:
		next.fence = o.fence
		return o.held == !free && o.fence >= s.fence, next
	case mayAcquire:
		next.hold, next.fence, next.until = a.hold, s.fence+1, 0
		return free || s.over, next
	case mayRelease:
		next.hold, next.until = 0, o.waits()
		return mine || s.over, next
	case mayForce:
		if next.hold = 0; !free {
			next.until = 0
		}
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
