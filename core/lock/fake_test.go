package lock_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

// fake answers a locker's calls in a bubble of synctest, where there is no Redis. It
// notes the time of each call.
type fake struct {
	mu      sync.Mutex
	calls   []call
	counts  map[string]int
	answers func(n int, c call) (reply any, err error) // the number of the call among calls of its script, from 1
}

type call struct {
	script string
	at     time.Time
	args   []any // the arguments after the key
	ctx    context.Context
}

var scriptNames = map[any]string{
	script.FromFS(lua.FS, "lock_acquire.lua").SHA(): "acquire",
	script.FromFS(lua.FS, "lock_extend.lua").SHA():  "extend",
	script.FromFS(lua.FS, "lock_release.lua").SHA(): "release",
	script.FromFS(lua.FS, "lock_leave.lua").SHA():   "leave",
	script.FromFS(lua.FS, "once_start.lua").SHA():   "start",
	script.FromFS(lua.FS, "once_end.lua").SHA():     "end",
}

func (f *fake) Process(ctx context.Context, cmd redis.Cmder) error {
	args := redistest.Write(cmd)
	c := call{scriptNames[args[1]], time.Now(), args[4:], ctx}
	f.mu.Lock()
	f.calls = append(f.calls, c)
	f.counts[c.script]++
	n, answers := f.counts[c.script], f.answers
	f.mu.Unlock()
	reply, err := answers(n, c)
	if err != nil {
		cmd.SetErr(err)
		return err
	}
	cmd.(interface{ SetVal(any) }).SetVal(reply)
	return nil
}

func (f *fake) of(script string) (some []call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if c.script == script {
			some = append(some, c)
		}
	}
	return some
}

// answer sets the function that answers the calls that follow.
func (f *fake) answer(answers func(n int, c call) (any, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = answers
}

const fakeFence = 7

// yes grants everything that is asked for.
func yes(_ int, c call) (any, error) {
	switch c.script {
	case "acquire":
		return int64(fakeFence), nil
	case "extend":
		return c.ttl().Milliseconds(), nil
	}
	return int64(1), nil
}

// ttl is the lease that an acquire or extend asks for.
func (c call) ttl() time.Duration {
	ms, err := time.ParseDuration(c.args[2].(string) + "ms")
	if err != nil {
		panic(err)
	}
	return ms
}

// hang answers only when the caller has given up.
func hang(c call) (any, error) {
	<-c.ctx.Done()
	return nil, c.ctx.Err()
}

func refuse() (any, error) { return nil, io.EOF }

func fakeLocker(t *testing.T, opts *lock.Options) (*fake, *lock.Locker) {
	t.Helper()
	f := &fake{answers: yes, counts: map[string]int{}}
	l, err := lock.New(f, "fake", opts)
	if err != nil {
		t.Fatal(err)
	}
	return f, l
}
