package lock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/internal/redistest"
)

// releasing notes which holds were released. None is there.
type releasing struct {
	mu    sync.Mutex
	holds []any
}

func (r *releasing) Process(_ context.Context, cmd redis.Cmder) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if args := redistest.Write(cmd); args[1] == releaseScript.SHA() {
		r.holds = append(r.holds, args[4])
	}
	cmd.(interface{ SetVal(any) }).SetVal(int64(ended))
	return nil
}

// TestTheUndoOfAnOldHoldEndsNoOther: a waiter with a call in doubt is handed the lock too late,
// and Lead asks anew with another hold, while the first is searched for.
func TestTheUndoOfAnOldHoldEndsNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := &releasing{}
		l, err := New(rdb, "undo", nil)
		if err != nil {
			t.Fatal(err)
		}
		b := &bid{key: "key", hold: "old", owner: "old", doubt: ask.Doubt{Last: time.Now(), Calls: 1}}
		late := handoff{hold: "handed", fence: 7, asked: time.Now().Add(-time.Hour)}
		if _, err := l.accept(t.Context(), b, late); !errors.Is(err, ErrExpired) {
			t.Errorf("a handoff that is too late: got %v, want %v", err, ErrExpired)
		}
		b.hold = "new"
		time.Sleep(time.Minute)
		rdb.mu.Lock()
		defer rdb.mu.Unlock()
		if slices.Contains(rdb.holds, any("new")) || !slices.Contains(rdb.holds, any("old")) || !slices.Contains(rdb.holds, any("handed")) {
			t.Errorf("got the holds %v released, want the old one and the one that was handed", rdb.holds)
		}
	})
}
