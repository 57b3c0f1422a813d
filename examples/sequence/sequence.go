package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/neap-go/neap/core/script"
)

//go:embed next.lua
var nextLua string

var next = script.New("next.lua", nextLua)

const (
	most = 999_999        // what six digits hold
	keep = 72 * time.Hour // longer than a clock is ever ahead: a record that lapsed meanwhile is missed when it is set right
)

// Number is an order number, such as 20261120-000001. As text, numbers sort in
// their order.
type Number struct{ Day, N int64 }

func (n Number) String() string { return fmt.Sprintf("%d-%06d", n.Day, n.N) }

// ErrFull says that the day has had its last number.
var ErrFull = errors.New("sequence: no number is left for today")

// Sequence gives out order numbers that begin anew each day in a time zone. It
// is safe for concurrent use, by any number of instances.
type Sequence struct {
	runner *script.Runner
	key    string
	zone   *time.Location

	mu    sync.Mutex
	ahead time.Duration // how far the server's clock was ahead of this one
}

// New makes a sequence on one key, of days in a zone, which must not be nil. It
// asks Redis nothing.
func New(rdb script.Client, key string, zone *time.Location) (*Sequence, error) {
	if zone == nil {
		return nil, errors.New("sequence: zone is nil: pass a *time.Location, such as time.UTC")
	}
	runner, err := script.NewRunner(rdb, &script.Options{Budget: time.Second})
	if err != nil {
		return nil, err
	}
	return &Sequence{runner: runner, key: key, zone: zone}, nil
}

// Next takes one number, in one round trip; in two when the clocks have drifted
// apart. It is larger than every number that was returned anywhere before Next
// was called. After an error a number may be gone: it is a gap, and asking again
// is safe.
func (s *Sequence) Next(ctx context.Context) (Number, error) {
	t, err := s.take(ctx, 1)
	return Number{t.Day, t.First}, err
}

// taken is the reply of next.lua.
type taken struct {
	Day   int64
	First int64
	Now   int64 // in milliseconds since 1970
}

func (s *Sequence) take(ctx context.Context, count int64) (taken, error) {
	for range 3 { // the first tells the time, the second may fall on the turn of a minute
		minute := s.now().Truncate(time.Minute) // no zone changes within one
		reply, err := s.runner.Run(ctx, next, []string{s.key},
			dayOf(minute, s.zone), minute.Unix(), minute.Unix()+60, count, most, keep.Milliseconds())
		if err != nil {
			return taken{}, err
		}
		var t taken
		if err := next.Decode(reply, &t); err != nil {
			return taken{}, err
		}
		s.hear(time.UnixMilli(t.Now))
		switch {
		case t.Day != 0 && t.First != 0:
			return t, nil
		case t.Day != 0:
			return taken{}, ErrFull
		}
	}
	return taken{}, errors.New("sequence: the server's clock jumps")
}

// dayOf is the date there, as yyyymmdd.
func dayOf(t time.Time, zone *time.Location) int64 {
	day, _ := strconv.ParseInt(t.In(zone).Format("20060102"), 10, 64)
	return day
}

// now is the server's time, as far as it is known.
func (s *Sequence) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.ahead)
}

func (s *Sequence) hear(server time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead = time.Until(server)
}
