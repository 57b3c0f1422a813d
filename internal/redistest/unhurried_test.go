package redistest

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/lua"
)

// TestUnhurriedWaits: a server stands still for longer than a call may take, and has no
// script. The unhurried client gets its answer nonetheless, another does not.
func TestUnhurriedWaits(t *testing.T) {
	t.Parallel()
	srv := NewStandalone(t)
	source, err := fs.ReadFile(lua.FS, "lock_inspect.lua")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(rdb *redis.Client) error {
		if err := rdb.Ping(t.Context()).Err(); err != nil { // so that it has a connection
			t.Fatal(err)
		}
		srv.Pause(t)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		resumed := make(chan struct{})
		time.AfterFunc(time.Second, func() { srv.Resume(t); close(resumed) })
		defer func() { <-resumed }()
		return redis.NewScript(string(source)).EvalSha(ctx, rdb, []string{Prefix(t)}).Err()
	}
	if err := ask(srv.Unhurried(t)); err != nil {
		t.Errorf("the unhurried client: got %v, want no error", err)
	}
	err = ask(srv.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true }))
	if timeout, is := errors.AsType[interface {
		error
		Timeout() bool
	}](err); !is || !timeout.Timeout() {
		t.Errorf("any other client: got %v, want a time-out", err)
	}
}
