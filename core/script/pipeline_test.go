package script_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// pipelines are both kinds of AutoPipeline on a client.
func pipelines(t testing.TB, rdb interface {
	AutoPipeline() (*redis.AutoPipeliner, error)
	AsyncAutoPipeline() (*redis.AutoPipeliner, error)
},
) map[string]*redis.AutoPipeliner {
	t.Helper()
	blocking, err := rdb.AutoPipeline()
	if err != nil {
		t.Fatal(err)
	}
	async, err := rdb.AsyncAutoPipeline()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { blocking.Close(); async.Close() })
	return map[string]*redis.AutoPipeliner{"AutoPipeline": blocking, "AsyncAutoPipeline": async}
}

// TestPipelinedCallsGetTheirOwnReplies sends the calls of many goroutines together,
// including errors and unknown scripts.
func TestPipelinedCallsGetTheirOwnReplies(t *testing.T) {
	t.Parallel()
	srv, cl := redistest.NewStandalone(t), redistest.NewCluster(t)
	for where, rdb := range map[string]interface {
		AutoPipeline() (*redis.AutoPipeliner, error)
		AsyncAutoPipeline() (*redis.AutoPipeliner, error)
	}{"standalone": srv.Client(t), "cluster": cl.Client(t)} {
		for name, pipe := range pipelines(t, rdb) {
			t.Run(where+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := newRunner(t, pipe, &script.Options{Budget: 10 * time.Second})
				key := redistest.Prefix(t)
				var wg sync.WaitGroup
				var mu sync.Mutex
				seen := map[any]bool{}
				const callers, each = 32, 50
				for caller := range callers {
					wg.Go(func() {
						for i := range each {
							if (caller+i)%7 == 0 {
								if _, err := r.Run(t.Context(), broken, []string{key}); !errors.Is(err, script.ErrFailed) {
									t.Errorf("a script that fails: got %v, want ErrFailed", err)
								}
							}
							n, err := r.Run(t.Context(), count, []string{key}, 1)
							if err != nil {
								t.Errorf("a call: got %v, want no error", err)
								return
							}
							mu.Lock()
							if seen[n] {
								t.Errorf("the reply %v: got it twice, want it once", n)
							}
							seen[n] = true
							mu.Unlock()
						}
					})
				}
				wg.Wait()
				for n := range int64(callers * each) {
					if !seen[n+1] {
						t.Errorf("the reply %d: got it in no call, want it once", n+1)
					}
				}
			})
		}
	}
}

var broken = script.New("broken.lua", "return redis.error_reply('ERR my own')")

// TestPipelinedCallsAreBounded stops the server under a pipeline.
func TestPipelinedCallsAreBounded(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	for name, pipe := range pipelines(t, srv.Client(t)) {
		r := newRunner(t, pipe, &script.Options{Budget: time.Second})
		key := redistest.Prefix(t)
		redistest.Await(t, 20*time.Second, "a first call", func() bool {
			_, err := r.Run(t.Context(), count, []string{key}, 0)
			return err == nil
		})
		srv.Pause(t)
		stood := redistest.Witness(t)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				began := time.Now()
				_, err := r.Run(t.Context(), count, []string{key}, 1)
				if took := time.Since(began); took > 5*time.Second+stood() || !errors.Is(err, script.ErrMaybeExecuted) {
					t.Errorf("%s: a call to a stopped server: got %v after %v, want ErrMaybeExecuted within 5s",
						name, err, took)
				}
			})
		}
		wg.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		if _, err := r.Run(ctx, count, []string{key}, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: a call with a deadline of 5ms: got %v, want DeadlineExceeded", name, err)
		}
		cancel()
		patient := newRunner(t, pipe, &script.Options{Budget: time.Minute})
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(5*time.Millisecond, cancel)
		began := time.Now()
		if _, err := patient.Run(ctx, count, []string{key}, 1); !errors.Is(err, context.Canceled) || time.Since(began) > 5*time.Second+stood() {
			t.Errorf("%s: a call that is canceled: got %v after %v, want context.Canceled within 5s",
				name, err, time.Since(began))
		}
		srv.Resume(t)
		// The calls that were queued run now, each once.
		redistest.Await(t, 20*time.Second, "an answer", func() bool {
			n, err := r.Run(t.Context(), count, []string{key}, 0)
			return err == nil && n.(int64) <= 22
		})
	}
}

// TestARingMakesNoAutoPipeline: a Ring can be recognized by the client's type only as
// long as go-redis makes no AutoPipeliner of it, because the client inside one cannot be
// seen.
func TestARingMakesNoAutoPipeline(t *testing.T) {
	t.Parallel()
	ring := redis.NewRing(&redis.RingOptions{})
	t.Cleanup(func() { ring.Close() })
	for name, pipe := range map[string]func() (*redis.AutoPipeliner, error){
		"AutoPipeline":      ring.AutoPipeline,
		"AsyncAutoPipeline": ring.AsyncAutoPipeline,
		"AutoPipelineWithOptions": func() (*redis.AutoPipeliner, error) {
			return ring.AutoPipelineWithOptions(&redis.AutoPipelineOptions{})
		},
		"AsyncAutoPipelineWithOptions": func() (*redis.AutoPipeliner, error) {
			return ring.AsyncAutoPipelineWithOptions(&redis.AutoPipelineOptions{})
		},
	} {
		if p, err := pipe(); p != nil || !errors.Is(err, redis.ErrRingAutoPipelineUnsupported) {
			t.Errorf("%s of a Ring: got one %v, %v, want none and ErrRingAutoPipelineUnsupported", name, p != nil, err)
		}
	}
}
