package fleet

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// process is what serves an instance in a process that runs no test.
type process struct{ testing.TB }

func (process) Helper()           {}
func (process) Cleanup(func())    {}
func (process) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// callbackChild serves an endpoint and says where. Its handler says began, and
// books when it is told to; asked, it says how often that was.
func (f Fleet) callbackChild(words []string) {
	addr, prefix, framework := words[0], words[1], words[2]
	guard, err := idempotency.New(storetest.Child(addr, prefix), "callbacks", idempotency.Retry{}, &idempotency.Options{
		Retention: 48 * time.Hour, Budget: 5 * time.Second, // a busy machine answers late
	})
	if err != nil {
		panic(err)
	}
	preset := callback.Alipay()
	preset.Deadline = time.Minute
	var booked atomic.Int64
	finish := make(chan struct{})
	endpoint, err := callback.New(preset, guard, verified, func(context.Context, *callback.Event) error {
		fmt.Println("began")
		<-finish
		booked.Add(1)
		return nil
	}, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(f[framework].Endpoint(process{}, endpoint))
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "finish":
			finish <- struct{}{}
		case "count":
			fmt.Println("booked", booked.Load())
		}
	}
}

// Of fifty deliveries of one event at once, at a process behind each framework, one runs; only its own is acknowledged, and all are from then on.
func (f Fleet) testOneRunInManyProcesses(t *testing.T) {
	t.Parallel()
	const deliveries = 50
	srv := redistest.Standalone(t)
	prefix := srv.Prefix(t)
	type shop struct {
		*redistest.Child
		address string
	}
	var shops []shop
	for _, framework := range f.names() {
		c := redistest.StartChild(t, "callback", srv.Addr(), prefix, framework)
		shops = append(shops, shop{c, c.Line(t)})
	}
	deliver := func(s shop) answer {
		got, err := post(s.address, "/orders/1", "notify_id=n&out_trade_no=o&trade_status=s", "X-Demo-Signature", "ok")
		if err != nil {
			t.Error(err)
		}
		return got
	}
	var put, acked atomic.Int64
	var wg sync.WaitGroup
	for i := range deliveries {
		wg.Go(func() {
			switch got := deliver(shops[i%len(shops)]); got {
			case later:
				put.Add(1)
			case acknowledged:
				if acked.Add(1); put.Load() != deliveries-1 {
					t.Errorf("it was acknowledged when %d of the others were told later, want all %d",
						put.Load(), deliveries-1)
				}
			default:
				t.Errorf("got %+v, want %+v or %+v", got, later, acknowledged)
			}
		})
	}
	redistest.Await(t, time.Minute, "the others to be told later", func() bool { return put.Load() == deliveries-1 })
	running := -1
	redistest.Await(t, time.Minute, "a process to run it", func() bool {
		for i, s := range shops {
			s.Tell(t, "count")
			said := s.Line(t)
			if said == "began" {
				running, said = i, s.Line(t)
			}
			if said != "booked 0" {
				t.Errorf("process %d says %q, want \"booked 0\"", i, said)
			}
		}
		return running >= 0
	})
	shops[running].Tell(t, "finish")
	wg.Wait()
	if acked.Load() != 1 {
		t.Errorf("%d were acknowledged, want 1", acked.Load())
	}
	for i, s := range shops {
		if got := deliver(s); got != acknowledged {
			t.Errorf("then process %d answers %+v, want %+v", i, got, acknowledged)
		}
		s.Tell(t, "count")
		want := "booked 0"
		if i == running {
			want = "booked 1"
		}
		if got := s.Line(t); got != want {
			t.Errorf("process %d says %q, want %q", i, got, want)
		}
	}
}
