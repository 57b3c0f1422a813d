package ask

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/call"
	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/undo"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// server answers within a bubble of synctest. Each answer is for one call, and the last
// for all that follow.
type server struct {
	answers []any // a reply; io.EOF: lost; another error: refused
	took    time.Duration
	began   time.Time
	at      []time.Duration
	args    [][]any
}

func (s *server) Process(ctx context.Context, cmd redis.Cmder) error {
	s.at = append(s.at, time.Since(s.began))
	s.args = append(s.args, redistest.Write(cmd))
	time.Sleep(s.took)
	answer := s.answers[min(len(s.at), len(s.answers))-1]
	if err, ok := answer.(error); ok {
		cmd.SetErr(err)
		return err
	}
	cmd.(interface{ SetVal(any) }).SetVal(answer)
	return nil
}

// refusal is an error from the server.
type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

const budget = 100 * time.Millisecond

var question = script.New("question.lua", "return 1")

func asker(t *testing.T, s *server) *Asker {
	t.Helper()
	s.began = time.Now()
	return of(t, s)
}

// of returns an Asker of a client without a store.
func of(t *testing.T, rdb script.Client) *Asker {
	t.Helper()
	client, err := call.NewClient(rdb)
	if err != nil {
		t.Fatal(err)
	}
	return &Asker{Runner{bare{client: client}, budget}}
}

// bare is the inside of a store that only sends.
type bare struct {
	inside.Store

	client *call.Client
}

func (b bare) Send(ctx context.Context, c *call.Call, budget time.Duration) error {
	return b.client.Do(ctx, c, budget, nil)
}

// unwritten keeps each command until its caller has left, and never writes it.
type unwritten struct{}

func (unwritten) Process(ctx context.Context, cmd redis.Cmder) error {
	<-ctx.Done()
	cmd.SetErr(ctx.Err())
	return ctx.Err()
}

// TestACallThatWasNotWrittenIsInNoDoubt: there is nothing to take back.
func TestACallThatWasNotWrittenIsInNoDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := of(t, unwritten{})
		ctx, cancel := context.WithTimeout(t.Context(), budget/2)
		defer cancel()
		if _, _, in, err := a.Ask(ctx, question, "k"); !errors.Is(err, context.DeadlineExceeded) || in.Calls != 0 {
			t.Errorf("a call that was not written: got %d calls in doubt and %v, want none and the caller's deadline", in.Calls, err)
		}
	})
}

func TestAsksAgainWhileHalfOfTheBudgetIsLeft(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		answers []any
		took    time.Duration
		at      []time.Duration
		doubt   Doubt // Last is from the beginning on
		want    error
	}{
		"at once":          {[]any{"yes"}, 0, []time.Duration{0}, Doubt{}, nil},
		"the second":       {[]any{io.EOF, "yes"}, 0, []time.Duration{0, ms}, Doubt{Calls: 1}, nil},
		"the fourth":       {[]any{io.EOF, io.EOF, io.EOF, "yes"}, 0, []time.Duration{0, ms, 3 * ms, 7 * ms}, Doubt{Calls: 3}, nil},
		"never":            {[]any{io.EOF}, 0, []time.Duration{0, ms, 3 * ms, 7 * ms, 15 * ms, 31 * ms}, Doubt{Calls: 6}, script.ErrMaybeExecuted},
		"slow":             {[]any{io.EOF}, 30 * ms, []time.Duration{0, 31 * ms}, Doubt{Calls: 2}, script.ErrMaybeExecuted},
		"slower":           {[]any{io.EOF, "yes"}, 60 * ms, []time.Duration{0}, Doubt{Calls: 1}, script.ErrMaybeExecuted},
		"refused":          {[]any{refusal("NOPERM no")}, 0, []time.Duration{0}, Doubt{}, script.ErrConfiguration},
		"lost, refused":    {[]any{io.EOF, refusal("NOPERM no")}, 0, []time.Duration{0, ms}, Doubt{Calls: 1}, script.ErrMaybeExecuted},
		"lost, not run":    {[]any{io.EOF, refusal("OOM command not allowed")}, 0, []time.Duration{0, ms}, Doubt{Calls: 1}, script.ErrMaybeExecuted},
		"lost, fails":      {[]any{io.EOF, refusal("ERR user_script:1: wrong")}, 0, []time.Duration{0, ms}, Doubt{Calls: 1}, script.ErrFailed},
		"unknown":          {[]any{refusal("upstream failure"), "yes"}, 0, []time.Duration{0, ms}, Doubt{Calls: 1}, nil},
		"unknown, not run": {[]any{refusal("upstream failure"), refusal("OOM command not allowed")}, 0, []time.Duration{0, ms}, Doubt{Calls: 1}, script.ErrMaybeExecuted},
		"fails for ever":   {[]any{refusal("ERR user_script:1: wrong")}, 0, []time.Duration{0}, Doubt{}, script.ErrFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{answers: c.answers, took: c.took}
				a := asker(t, s)
				reply, asked, in, err := a.Ask(t.Context(), question, "key", "token")
				if !errors.Is(err, c.want) || (err == nil) != (reply == "yes") {
					t.Errorf("Ask: got the reply %v, %v, want the error %v, and a reply only without one",
						reply, err, c.want)
				}
				if !slices.Equal(s.at, c.at) || in.Calls != c.doubt.Calls {
					t.Errorf("the calls: got them at %v, %d of them in doubt, want %v, %d in doubt",
						s.at, in.Calls, c.at, c.doubt.Calls)
				}
				if got := asked.Sub(s.began); got != c.at[len(c.at)-1] {
					t.Errorf("the last call: got it at %v, want %v", got, c.at[len(c.at)-1])
				}
				if in.Calls > 0 && in.Last.Sub(s.began) != c.at[in.Calls-1] {
					t.Errorf("the last call in doubt: got it at %v, want %v", in.Last.Sub(s.began), c.at[in.Calls-1])
				}
				for _, args := range s.args {
					if !slices.Equal(args, s.args[0]) {
						t.Errorf("a repeated call: got the arguments %v, want %v as at first", args, s.args[0])
					}
				}
			})
		})
	}
}

func TestACallerWhoGoesLeavesADoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: []any{"yes"}, took: 20 * time.Millisecond}
		a := asker(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, _, in, err := a.Ask(ctx, question, "key")
		if !errors.Is(err, context.DeadlineExceeded) || !IsCallers(err) || in.Calls != 1 || len(s.at) != 1 {
			t.Errorf("a caller that leaves: got %v, the doubt %+v, asked at %v, want DeadlineExceeded, 1 call, 1 ask",
				err, in, s.at)
		}
		time.Sleep(time.Second)
		synctest.Wait() // for what was left behind

		s = &server{answers: []any{io.EOF}, took: 2 * time.Millisecond}
		a = asker(t, s)
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(2500*time.Microsecond, cancel) // between two questions
		_, _, in, err = a.Ask(ctx, question, "key")
		if err == nil || in.Calls != 1 || len(s.at) != 1 {
			t.Errorf("a caller that leaves later: got %v, the doubt %+v, asked at %v, want an error, 1 call, 1 ask",
				err, in, s.at)
		}
		time.Sleep(time.Second)
	})
	if IsCallers(&script.Error{}) || !IsCallers(context.Canceled) {
		t.Errorf("IsCallers: got %v of a script.Error, %v of context.Canceled, want false, true",
			IsCallers(&script.Error{}), IsCallers(context.Canceled))
	}
}

func TestAdd(t *testing.T) {
	t.Parallel()
	first, last := time.Unix(1, 0), time.Unix(2, 0)
	d := Doubt{}
	for _, c := range []struct{ more, want Doubt }{
		{Doubt{}, Doubt{}},
		{Doubt{first, 2}, Doubt{first, 2}},
		{Doubt{}, Doubt{first, 2}},
		{Doubt{last, 1}, Doubt{last, 3}},
	} {
		if d.Add(c.more); d != c.want {
			t.Errorf("Add: got %+v, want %+v", d, c.want)
		}
	}
}

func TestTakeBack(t *testing.T) {
	t.Parallel()
	type end struct {
		found bool
		err   error
	}
	lost, refused := &script.Error{Class: script.ErrMaybeExecuted}, &script.Error{Class: script.ErrNotExecuted}
	failed, misconfigured := &script.Error{Class: script.ErrFailed}, &script.Error{Class: script.ErrConfiguration}
	const lease = 3 * time.Second
	for name, c := range map[string]struct {
		calls    int
		answered bool
		ends     []end // the last for all that follow
		times    int
		undone   uint64
	}{
		"there":                  {1, false, []end{{true, nil}}, 1, 1},
		"one of two":             {2, false, []end{{true, nil}, {false, nil}}, 6, 1},
		"two of two":             {2, false, []end{{true, nil}, {false, nil}, {true, nil}}, 3, 2},
		"not there":              {1, false, []end{{false, nil}}, 6, 0},
		"unanswered, then there": {1, false, []end{{false, lost}, {false, refused}, {true, nil}}, 3, 1},
		"failed":                 {1, false, []end{{false, failed}}, 6, 0},
		"refused":                {1, false, []end{{false, misconfigured}}, 6, 0},
		"unknown, then there":    {1, false, []end{{false, lost}, {true, nil}}, 2, 1},
		"answered, not there":    {1, true, []end{{false, nil}}, 1, 1},
		"answered, there":        {3, true, []end{{true, nil}}, 1, 1},
		"answered, failed":       {1, true, []end{{false, failed}, {false, nil}}, 2, 1},
		"answered, unanswered":   {1, true, []end{{false, lost}, {false, nil}}, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var u undo.Undoer
				times := 0
				d := Doubt{Last: time.Now(), Calls: c.calls}
				d.TakeBack(u.Start, lease, c.answered, func() (bool, error) {
					times++
					e := c.ends[min(times, len(c.ends))-1]
					return e.found, e.err
				})
				time.Sleep(time.Hour)
				synctest.Wait()
				if got := u.Stats(); times != c.times || got.Undone != c.undone || got.Pending != 0 {
					t.Errorf("TakeBack: got %d attempts and stats %+v, want %d, %d undone and none pending",
						times, got, c.times, c.undone)
				}
			})
		})
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !Pause(t.Context(), time.Second) || time.Since(began) != time.Second {
			t.Errorf("a pause of 1s: got an end after %v, want 1s and true", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if Pause(ctx, time.Hour) || time.Since(began) != 2*time.Second {
			t.Errorf("a pause until a deadline: got an end after %v, want 2s and false", time.Since(began))
		}
	})
}
