package neaptest

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestWaitForALockInAScene has a caller subscribe to the release of a lock in each scene. go-redis then has a goroutine that
// connects, and another that waits for a mutex of the first: nothing that takes time may hold it.
func TestWaitForALockInAScene(t *testing.T) {
	t.Parallel()
	for name, scene := range map[string]func(*Redis, *redis.Client){
		"Slow":     func(r *Redis, _ *redis.Client) { r.Slow(10 * time.Millisecond) },
		"Silent":   func(r *Redis, _ *redis.Client) { r.Slow(time.Hour) },
		"Pause":    func(r *Redis, there *redis.Client) { r.Pause(there) },
		"Lose":     func(r *Redis, there *redis.Client) { r.Lose(there) },
		"Failover": func(r *Redis, _ *redis.Client) { r.Failover() },
	} {
		for when, subscribed := range map[string]time.Duration{"before": 0, "while it waits": time.Second} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				play(t, func(t *testing.T, r *Redis) {
					here, there := r.Client(), r.Client()
					other := must(locker(t, there, 3*time.Second).WithWait(time.Minute))(t)
					held := must(locker(t, here, 3*time.Second).Try(t.Context(), "order-17"))(t)
					var callers sync.WaitGroup
					if subscribed == 0 {
						scene(r, there)
					}
					for _, key := range []string{"order-17", "order-17", "order-18"} {
						callers.Go(func() {
							got, err := other.Acquire(t.Context(), key)
							if err != nil {
								return // while it lasts, a scene may cost the lock
							}
							time.Sleep(10 * time.Millisecond)
							_ = got.Release(t.Context())
						})
					}
					time.Sleep(time.Second)
					if subscribed > 0 {
						scene(r, there)
					}
					time.Sleep(5 * time.Second)
					r.Restore()
					_ = held.Release(t.Context())
					callers.Wait()
					time.Sleep(time.Minute)
					if got, err := other.Acquire(t.Context(), "order-17"); err != nil {
						t.Errorf("afterwards: got %v, want the lock", err)
					} else {
						_ = got.Release(t.Context())
					}
				})
			})
		}
	}
}
