package lock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

// wantsWaking waits until a record says that a waiter wants to be woken.
func wantsWaking(t *testing.T, admin redis.UniversalClient, record string) {
	t.Helper()
	redistest.Await(t, soon, "a waiter to ask to be woken", func() bool {
		how, _ := admin.HGet(t.Context(), record, "wake").Result()
		return how != ""
	})
}

// runRecord is the key of the record of a tick.
func runRecord(prefix, job string, tick time.Time) string {
	return fmt.Sprintf("%s:%d", recordOf(prefix, job), tick.UnixMilli())
}

// nothing is a function to run under a lock if it does not matter what runs.
func nothing(context.Context) error { return nil }
