package call

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/wire"
)

// TestWhatACallerMayUseAgain: only a call whose first attempt was merged. A client may
// refer to any other.
func TestWhatACallerMayUseAgain(t *testing.T) {
	t.Parallel()
	s := wire.New("one.lua", "return 7", nil).MergedBy(&wire.Merging{
		Script: wire.New("many.lua", "", nil), Keys: 1, Own: 1, Told: 1,
	})
	client, err := NewClient(neverAnswers{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		again, merged, want bool
	}{
		"merged":              {merged: true, want: true},
		"by itself":           {},
		"merged when retried": {merged: true, again: true},
	} {
		again := c.again
		by := transport(func(ctx context.Context, cmd *wire.Command) error {
			switch {
			case again:
				again = false
				cmd.SetErr(loadingError{})
			case c.merged:
				twin := new(wire.Command)
				twin.Set(ctx, s, []any{"evalsha", nil, wire.Count(1), "k", "1"}, false, time.Time{})
				var m wire.Merger
				m.Merge(ctx, []*wire.Command{cmd, twin}, 1)[0].(interface{ SetVal(states []int64) }).SetVal([]int64{2})
				m.Deliver(ctx, 1)
			default:
				cmd.SetVal(int64(7))
			}
			return nil
		})
		own := new(Call)
		if err := own.Set(s, []string{"k"}, []any{"1"}); err != nil {
			t.Fatal(err)
		}
		if err := client.Do(t.Context(), own, time.Minute, by); err != nil {
			t.Errorf("%s: got %v, want no error", name, err)
		}
		if told, _ := own.Told(); (told != nil) != c.merged || told == nil && own.Reply() != int64(7) {
			t.Errorf("%s: got the reply %v, told %v, want 7 or what was told", name, own.Reply(), told)
		}
		if got := own.Reset(); got != c.want || (own.Script() == nil) != c.want {
			t.Errorf("%s: got Reset %v, and a call of a script %v; want %v and %v", name, got, own.Script() != nil, c.want, !c.want)
		}
	}
}

// TestACallerThatHasLeftMayUseItsBytesAgain: what is written later is what the caller passed.
func TestACallerThatHasLeftMayUseItsBytesAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		inline  bool          // the client honours deadlines
		own     time.Duration // until the caller's own deadline
		carried bool          // by a transport
	}{
		"a client that honours no deadline": {own: time.Hour},
		"a short call":                      {inline: true, own: time.Second},
		"a transport":                       {inline: true, own: time.Hour, carried: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			rdb := &writesLate{got: make(chan string, 1)}
			client := &Client{rdb: rdb, inline: c.inline}
			ctx, cancel := context.WithTimeout(t.Context(), c.own)
			defer cancel()
			var by Transport
			if c.carried {
				by = transport(func(ctx context.Context, cmd *wire.Command) error {
					go func() { _ = rdb.Process(ctx, cmd) }()
					time.Sleep(time.Minute)
					return context.DeadlineExceeded
				})
			}
			call, arg := one(t), []byte("of this caller")
			call.args = []any{arg}
			if err := client.Do(ctx, call, time.Minute, by); err == nil {
				t.Errorf("%s: got no error, want one: this test is about a caller that leaves", name)
			}
			copy(arg, "of the next one")
			if got := <-rdb.got; got != "of this caller" {
				t.Errorf("%s: got %q written after the caller had left, want what it passed", name, got)
			}
		})
	}
}

// TestBytesAreNotCopiedForTheCallersOwnGoroutine: nothing else writes them.
func TestBytesAreNotCopiedForTheCallersOwnGoroutine(t *testing.T) {
	t.Parallel()
	call := one(t)
	call.args = []any{[]byte("1")}
	if _, is := call.words(true)[4].([]byte); !is {
		t.Errorf("got %T, want the bytes themselves", call.words(true)[4])
	}
}

// writesLate is a client that writes the last argument after the caller has left.
type writesLate struct{ got chan string }

func (w *writesLate) Process(_ context.Context, cmd redis.Cmder) error {
	time.Sleep(time.Hour)
	args := cmd.Args()
	w.got <- fmt.Sprintf("%s", args[len(args)-1])
	return context.DeadlineExceeded
}

// TestDeadlinesThatAClientHonours: none with a time-out of -2, which turns deadlines off.
func TestDeadlinesThatAClientHonours(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		enabled     bool
		read, write time.Duration
		want        bool
	}{
		{enabled: true, want: true},
		{enabled: true, read: time.Second, write: time.Second, want: true},
		{},
		{enabled: true, read: -2},
		{enabled: true, read: time.Second, write: -2},
	} {
		single := redis.NewClient(&redis.Options{ContextTimeoutEnabled: c.enabled, ReadTimeout: c.read, WriteTimeout: c.write})
		cluster := redis.NewClusterClient(&redis.ClusterOptions{ContextTimeoutEnabled: c.enabled, ReadTimeout: c.read, WriteTimeout: c.write})
		ring := redis.NewRing(&redis.RingOptions{ContextTimeoutEnabled: c.enabled, ReadTimeout: c.read, WriteTimeout: c.write})
		for _, rdb := range []redis.UniversalClient{single, cluster, ring} {
			client, err := NewClient(rdb)
			if err != nil {
				t.Fatal(err)
			}
			if got := client.HonoursDeadlines(); got != c.want {
				t.Errorf("a %T with %+v: got %v", rdb, c, got)
			}
			_ = rdb.Close()
		}
	}
}
