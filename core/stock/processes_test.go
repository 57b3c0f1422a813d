package stock_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// crowd is a child process that asks many times at once. Its buyers are also those of the
// other processes. Each asks again and again, with an immediate sale or with a Confirm
// afterwards, and some change their mind. It prints the buyers that it takes for sold.
func crowd(words []string) {
	addr, prefix := words[0], words[1]
	requests, err := strconv.Atoi(words[2])
	if err != nil {
		panic(err)
	}
	s, err := stock.New(storetest.Child(addr, prefix), "test", &stock.Options{Budget: 10 * time.Second})
	if err != nil {
		panic(err)
	}
	if err := s.Warm(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println("ready")
	_, _ = fmt.Scanln()
	var mu sync.Mutex
	sold := map[string]bool{}
	jobs := make(chan int)
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for i := range jobs {
				buyer := fmt.Sprint("buyer", i%max(requests/8, 2*unitsOfACrowd))
				if request(s, buyer, i) {
					mu.Lock()
					sold[buyer] = true
					mu.Unlock()
				}
			}
		})
	}
	for i := range requests {
		jobs <- i
	}
	close(jobs)
	all.Wait()
	var names []string
	for buyer := range sold {
		names = append(names, buyer)
	}
	fmt.Println("sold " + strings.Join(names, " "))
	_, _ = fmt.Scanln()
}

// request reports whether the buyer was told that the unit is sold.
func request(s *stock.Stock, buyer string, i int) bool {
	ctx := context.Background()
	opts := &stock.ReserveOptions{Confirm: i%2 == 0}
	r, err := s.Reserve(ctx, "item", buyer, "order of "+buyer, opts)
	switch {
	case errors.Is(err, stock.ErrSoldOut), errors.Is(err, stock.ErrCalls):
		return false
	case err != nil:
		fmt.Println("error", err)
		return false
	case i%5 == 0 && !r.Again():
		err = r.Cancel(ctx)
	case !opts.Confirm:
		err = r.Confirm(ctx)
	}
	if err != nil {
		fmt.Println("error", err)
	}
	return r.Confirmed()
}

const unitsOfACrowd = 100

// TestEightProcesses asks for 100 units, at full scale 10,000 times in each of eight
// processes. Exactly 100 units are sold, to 100 buyers, and each of these buyers was told
// so.
func TestEightProcesses(t *testing.T) {
	t.Parallel()
	const processes, units = 8, unitsOfACrowd
	srv := redistest.NewStandalone(t)
	prefix := srv.Prefix(t)
	s := newStock(t, srv.Client(t), prefix, nil)
	open(t, s, "item", units)
	var children []*redistest.Child
	for range processes {
		p := redistest.StartChild(t, "crowd", srv.Addr(), prefix, strconv.Itoa(redistest.Ops(10_000)))
		if line := p.Line(t); line != "ready" {
			t.Fatalf("the child: got %q, want ready", line)
		}
		children = append(children, p)
	}
	for _, p := range children {
		p.Tell(t, "go")
	}
	told := map[string]bool{}
	for _, p := range children {
		line := p.Line(t)
		for ; !strings.HasPrefix(line, "sold"); line = p.Line(t) {
			t.Errorf("the child: got %q, want its buyers", line)
		}
		for buyer := range strings.FieldsSeq(strings.TrimPrefix(line, "sold")) {
			told[buyer] = true
		}
	}
	counts(t, s, "item", 0, 0, units)
	buyers := 0
	for b, err := range s.Buyers(t.Context(), "item") {
		if err != nil {
			t.Fatal(err)
		}
		if buyers++; !b.Sold || b.Quantity != 1 || !told[b.Buyer] {
			t.Errorf("got the buyer %+v, told %t, want one unit that is sold, and true", b, told[b.Buyer])
		}
	}
	if buyers != units || len(told) != units {
		t.Errorf("got %d buyers and %d that were told, want %d of both", buyers, len(told), units)
	}
}
