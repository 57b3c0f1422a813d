// Eight processes take order numbers from one sequence, such as 20261120-000001,
// which begins anew each day where the shop is, by the server's clock: first one
// at a time, then in leased blocks.
//
// The program starts the processes itself and fails when a number was given out
// twice or was not larger than those before it. Without -redis they meet in an
// embedded Redis:
//
//	go run ./examples/sequence -redis redis://localhost:6379 -zone Asia/Tokyo
//
// What holds: while one Redis primary keeps its data, no number is given out
// twice, and each is larger than all that were given out before it was asked for;
// those of blocks, than all that were given out a lease before. What does not:
//
//   - there are gaps: a lost reply, a block whose process ended, a lease that lapsed;
//   - a primary that forgets gives numbers out again. Run it with appendonly yes and
//     appendfsync always: with everysec a crash loses up to a second, and without
//     persistence a restart begins the day anew. A failover may lose the last writes
//     whatever the settings. A UNIQUE constraint in the database finds it out;
//   - a server clock that was ahead keeps the day it had: the numbers go on in that
//     day until it comes, and after 999,999 of them it is ErrFull till then;
//   - a server that evicts keys forgets too, under volatile-* as under allkeys-*. Its
//     maxmemory-policy has to be noeviction;
//   - instances whose time zone data differ agree on the later day;
//   - a day has 999,999 numbers, so that they sort as text; then it is ErrFull.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/neap-go/neap/examples/internal/backend"
	"github.com/neap-go/neap/examples/internal/self"
)

const (
	processes = 8
	each      = 300 // numbers a process, of either way
	size      = 20
	lease     = 200 * time.Millisecond // of a block; a shop's would be a minute
	patience  = 20 * time.Second       // how long a process asks without getting a number
)

func main() {
	url := flag.String("redis", "", backend.FlagUsage)
	cluster := flag.Bool("cluster", false, "to such a process: the Redis is a cluster")
	zone := flag.String("zone", "Europe/Lisbon", "the time zone in which a day begins")
	key := flag.String("process", "", "be one of the processes, that takes numbers from this key")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if *key == "" {
		err = play(ctx, *url, *zone)
	} else {
		err = serve(self.WhileOpen(ctx, os.Stdin), *url, *cluster, *key, *zone)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sequence:", err)
		os.Exit(1)
	}
}

// serve is what each process does.
func serve(ctx context.Context, url string, cluster bool, key, zone string) error {
	rdb, err := backend.Open(url, cluster)
	if err != nil {
		return err
	}
	defer rdb.Close()
	location, err := time.LoadLocation(zone)
	if err != nil {
		return err
	}
	orders, err := New(rdb, key, location)
	if err != nil {
		return err
	}
	blocks := &Blocks{Sequence: orders, Size: size, Lease: lease}
	// In either order, so that some processes take blocks while others do not.
	for way, next := range map[string]func(context.Context) (Number, error){"single": orders.Next, "block": blocks.Next} {
		if err := draw(ctx, way, next); err != nil {
			return err
		}
	}
	return nil
}

// draw takes numbers and prints them. What fails is asked again: a number that is
// lost is a gap.
func draw(ctx context.Context, way string, next func(context.Context) (Number, error)) error {
	had := time.Now()
	for taken := 0; taken < each; {
		asked := time.Now()
		number, err := next(ctx)
		switch {
		case err == nil:
			had = time.Now()
			taken++
			fmt.Println(way, asked.UnixNano(), had.UnixNano(), number.Day, number.N)
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Since(had) >= patience:
			return fmt.Errorf("no number in %v: %w", patience, err)
		default:
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}
