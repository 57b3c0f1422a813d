// Play serves a page on which you try neap. Four algorithms decide the same traffic side by side. Redis stops and comes
// back. Ten workers want one lock, one key is sent five times, and a hundred buyers want ten chairs. Below that is the
// page of package console, which shows what happens.
//
// The state is in an embedded Redis, so that you need not install anything. The page is for one person: everyone who
// opens it sees and controls the same traffic.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/neap-go/neap/examples/internal/host"
)

func main() {
	log.SetFlags(0)
	addr := flag.String("addr", "127.0.0.1:8090", "address to listen on")
	budget := flag.Duration("budget", 250*time.Millisecond, "the longest that a call to Redis takes")
	flag.Parse()
	logging.Disable() // go-redis tells of every dial that fails while Redis is stopped
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *addr, *budget); err != nil {
		log.Print("play: ", err)
		defer os.Exit(1)
	}
}

// serve serves the page until ctx ends.
func serve(ctx context.Context, addr string, budget time.Duration) error {
	p, err := newPlay(budget)
	if err != nil {
		return err
	}
	defer p.close()
	h, err := host.Listen(ctx, addr, host.HTTP(p.handler()))
	if err != nil {
		return fmt.Errorf("%w: name another address by -addr, or by ADDR of make play", err)
	}
	fmt.Println("Open " + h.URL + " in a browser. End it by Ctrl-C.")
	go p.traffic.send(p.done)
	select {
	case <-ctx.Done():
		close(p.done)
		return h.Stop(ctx, 5*time.Second)
	case err := <-h.Ended:
		close(p.done)
		return err
	}
}
