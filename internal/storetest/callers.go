package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// CallersWhoGo asks in several ways, each by a client of the server whose pool has
// one connection, and has the context end before the question is sent, while there
// is no connection, and in flight; it pauses the server for that. Each caller
// must get its own context's error. unsent is called when a key was not asked for, and
// free is to await that nothing of a question stays behind.
func CallersWhoGo(tb testing.TB, srv *redistest.Server, rdb *redis.Client,
	asks map[string]func(ctx context.Context, key string) error, unsent, free func(key string),
) {
	tb.Helper()
	canceled, cancel := context.WithCancel(tb.Context())
	cancel()
	for call, ask := range asks {
		if err := ask(canceled, "unsent"); !errors.Is(err, context.Canceled) {
			tb.Errorf("%s before it is sent: %v", call, err)
		}
	}
	unsent("unsent")

	busy := rdb.Conn() // the only one
	if err := busy.Ping(tb.Context()).Err(); err != nil {
		tb.Fatal(err)
	}
	late := func(call, key string, patience time.Duration) {
		brief, cancel := context.WithTimeout(tb.Context(), patience)
		defer cancel()
		err := asks[call](brief, key)
		if _, is := errors.AsType[*script.Error](err); is || !errors.Is(err, context.DeadlineExceeded) {
			tb.Errorf("%s, %s: got %v, want the end of the caller's context", call, key, err)
		}
	}
	for call := range asks {
		late(call, "unconnected", 30*time.Millisecond)
	}
	if err := busy.Close(); err != nil {
		tb.Fatal(err)
	}
	free("unconnected")

	for call := range asks {
		srv.Pause(tb)
		late(call, "in-flight-"+call, 50*time.Millisecond)
		srv.Resume(tb)
		free("in-flight-" + call)
	}
}
