package lock

import (
	"context"
	"time"
)

// State is what Redis knows about a lock. The zero State is that of a key that was never
// locked.
type State struct {
	Held bool
	// Owner is the owner as Redis stores it. It is the name that was given to As (hashed
	// if it is long or unusual), or a random name if there is none. It is "" if the lock
	// is not held.
	Owner string
	Holds int           // how many holds the owner has
	Fence int64         // the last fencing number; 0 if none is remembered
	Lease time.Duration // until the lock lapses if it is not renewed
}

// Inspect reports which owner has a lock at the moment of the call. It is for operators. It
// returns the errors of Try, without ErrHeld. It costs one round trip and changes
// nothing.
func (l *Locker) Inspect(ctx context.Context, key string) (State, error) {
	b, err := l.bid(ctx, key)
	if err != nil {
		return State{}, err
	}
	reply, err := l.asker.Run(ctx, inspectScript, []string{b.key})
	if err != nil {
		return State{}, err
	}
	state, _ := readState(reply)
	return state, nil
}

// readState reads the reply of lock_inspect.lua.
func readState(reply any) (s State, ok bool) {
	parts, _ := reply.([]any)
	if len(parts) != 4 {
		return State{}, false
	}
	fence, ok1 := parts[0].(int64)
	left, ok2 := parts[1].(int64)
	holds, ok3 := parts[2].(int64)
	owner, ok4 := parts[3].(string)
	return State{
		Held: holds > 0, Owner: owner, Holds: int(holds), Fence: fence, Lease: time.Duration(left) * time.Millisecond,
	}, ok1 && ok2 && ok3 && ok4
}

func isState(reply any) bool {
	_, ok := readState(reply)
	return ok
}

// ForceRelease ends all holds of a lock, and reports whether there was one. It is for
// operators who know that the holder is gone. A holder that is alive learns of it only
// when it renews its lease, and until then two holders may work side by side.
//
// It returns the errors of Inspect. After [script.ErrMaybeExecuted] the lock may have
// been ended, or may still be ended. ForceRelease does not ask a second time, because
// that could end the lock of the next holder. It costs one round trip.
func (l *Locker) ForceRelease(ctx context.Context, key string) (bool, error) {
	b, err := l.bid(ctx, key)
	if err != nil {
		return false, err
	}
	reply, err := l.asker.Run(ctx, forceScript, []string{b.key})
	if err != nil {
		return false, err
	}
	return reply == int64(1), nil
}
