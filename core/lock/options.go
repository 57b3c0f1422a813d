package lock

import (
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// What Options mean where they say 0, and the range of a TTL.
const (
	DefaultTTL            = 30 * time.Second
	DefaultWait           = 10 * time.Second
	DefaultRetryDelay     = 200 * time.Millisecond
	DefaultFenceRetention = 48 * time.Hour

	MinTTL        = 50 * time.Millisecond
	MaxTTL        = 24 * time.Hour
	MinRetryDelay = 5 * time.Millisecond

	minFenceRetention = time.Minute
	maxFenceRetention = 366 * 24 * time.Hour
)

// Options are a Locker's options. The zero value is ready to use; it is copied
// by New.
type Options struct {
	// Budget is the most time that one question to Redis takes, whatever the
	// client's own timeouts are, but never more than a third of TTL or MaxHold.
	// A millisecond to an hour; 0 means the store's, or script.DefaultBudget, 250 ms.
	// Until a server has first answered, a question may take the store's FirstContact.
	Budget time.Duration
	// TTL is how long a lock outlives a holder that is gone: MinTTL to MaxTTL,
	// 0 means DefaultTTL. It is renewed when a third of it has passed.
	TTL time.Duration
	// NoRenewal makes a plain lease of it, which ends TTL after it was granted
	// unless it is extended, and whose holder hears of an earlier loss only from
	// Extend and Release.
	NoRenewal bool
	// MaxHold is how long after its grant a lock ends though its holder is
	// alive, for a holder that hangs: its lease reaches no further. At least
	// MinTTL; 0 means that there is no such end.
	MaxHold time.Duration

	// Wait is how long Acquire waits for a lock that is held, a millisecond to
	// 24 h; 0 means DefaultWait. It has nothing to do with the TTL.
	Wait time.Duration
	// RetryDelay is the longest time between two questions of who waits for a
	// lock of another process, MinRetryDelay to 24 h; 0 means
	// DefaultRetryDelay. The first in line of a process asks, after between a
	// half and the whole of it, and at once when it is woken.
	RetryDelay time.Duration

	// FenceRetention is how long the fence of a lock is remembered in Redis
	// after its release, a minute to a year; 0 means DefaultFenceRetention.
	// It has to be longer than the server's clock may ever be set back; a
	// record takes some 180 bytes for as long. Once runs no tick
	// that is longer ago, and remembers for twice as long which have run. What
	// was written stays as it was: give all processes the same, and do not have
	// Once run ticks of before it was raised.
	FenceRetention time.Duration
}

func (o *Options) settled(st *store.Store) (Options, error) {
	var own Options
	if o != nil {
		own = *o
	}
	var faults []error
	settle := func(name string, d *time.Duration, least, most, otherwise time.Duration) {
		switch {
		case *d == 0:
			*d = otherwise
		case *d < least || *d > most:
			faults = append(faults, fmt.Errorf("%s is %v: use %v to %v, or 0 for %v", name, *d, least, most, otherwise))
			*d = otherwise
		}
	}
	settle("Budget", &own.Budget, time.Millisecond, time.Hour, st.Budget(script.DefaultBudget))
	settle("TTL", &own.TTL, MinTTL, MaxTTL, DefaultTTL)
	settle("Wait", &own.Wait, time.Millisecond, MaxTTL, DefaultWait)
	settle("RetryDelay", &own.RetryDelay, MinRetryDelay, MaxTTL, DefaultRetryDelay)
	settle("FenceRetention", &own.FenceRetention, minFenceRetention, maxFenceRetention, DefaultFenceRetention)
	if own.MaxHold != 0 && own.MaxHold < MinTTL {
		faults = append(faults, fmt.Errorf("MaxHold is %v: use %v or more, or 0 for no end", own.MaxHold, MinTTL))
	}
	for _, d := range []*time.Duration{&own.TTL, &own.MaxHold, &own.FenceRetention} {
		*d = d.Truncate(time.Millisecond)
	}
	own.Budget = min(own.Budget, own.TTL/lease.Renewals)
	if own.MaxHold > 0 {
		own.Budget = min(own.Budget, own.MaxHold/lease.Renewals)
	}
	return own, errors.Join(faults...)
}
