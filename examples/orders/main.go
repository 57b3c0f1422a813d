// A shop whose orders are booked once, even when its process dies between the
// COMMIT of an order and the answer.
//
// The program starts processes of the shop, on net/http and on Gin, and is their
// client. It has one killed at that point, sends the order again under its
// Idempotency-Key, and fails unless it was booked exactly once and the client
// has it in the end. Without -redis they meet in an embedded Redis.
package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/neap-go/neap/examples/internal/self"
)

func main() {
	url := flag.String("redis", "", "URL of a Redis (default an embedded one)")
	process := flag.String("process", "", "be a process of the shop, on this framework")
	file := flag.String("db", "", "the database of such a process")
	dies := flag.Bool("dies", false, "be killed when an order is booked and not answered")
	flag.Parse()
	ctx := context.Background()
	var err error
	if *process == "" {
		err = play(ctx, *url)
	} else {
		err = serve(ctx, *process, *url, *file, *dies)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "orders:", err)
		os.Exit(1)
	}
}

func play(ctx context.Context, url string) error {
	ctx, end := context.WithTimeout(ctx, 2*time.Minute)
	defer end()
	if url == "" {
		m := miniredis.NewMiniRedis()
		if err := m.Start(); err != nil {
			return err
		}
		defer m.Close()
		m.ClockTTL(true) // keys expire in real time
		url = "redis://" + m.Addr()
	}
	dir, err := os.MkdirTemp("", "orders")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for i, framework := range []string{"net/http", "Gin"} {
		file := filepath.Join(dir, fmt.Sprint(i, ".db"))
		if err := buy(ctx, file, "-process", framework, "-redis", url, "-db", file); err != nil {
			return fmt.Errorf("%s: %w", framework, err)
		}
		fmt.Println(framework+":", "booked once, and answered in the end")
	}
	return nil
}

// buy is a client that wants one order, and gets no answer at first.
func buy(ctx context.Context, file string, args ...string) error {
	key := rand.Text()
	doomed, url, err := start(ctx, append(args, "-dies")...)
	if err != nil {
		return err
	}
	if status, body, _, err := post(ctx, url, key); err == nil {
		_ = doomed.Process.Kill()
		return fmt.Errorf("who was to be killed answered %d %s", status, body)
	}
	fmt.Println("no answer:", doomed.Wait())
	next, url, err := start(ctx, args...)
	if err != nil {
		return err
	}
	defer func() {
		_ = next.Process.Kill()
		_ = next.Wait() // it was killed
	}()
	for again := false; ; {
		status, body, replayed, err := post(ctx, url, key)
		switch {
		case err != nil:
			return err
		case status == http.StatusConflict: // the lease of the one that died is not over
			time.Sleep(time.Second) // its Retry-After
			continue
		case status != http.StatusCreated || body != `{"id":1,"item":"tea"}` || replayed != again:
			return fmt.Errorf("%d %s, replayed: %v", status, body, replayed)
		}
		fmt.Println(status, body, "replayed:", replayed)
		if again {
			break
		}
		again = true
	}
	n, err := count(ctx, file)
	if err == nil && n != 1 {
		err = fmt.Errorf("%d orders were booked", n)
	}
	return err
}

func post(ctx context.Context, url, key string) (status int, body string, replayed bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/orders", strings.NewReader(`{"item":"tea"}`))
	if err != nil {
		return 0, "", false, err
	}
	r.Header.Set("X-Api-Key", "alice")
	r.Header.Set("Idempotency-Key", key)
	r.GetBody = nil // with it the client would repeat the request by itself
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", false, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, strings.TrimSpace(string(text)), response.Header.Get("Idempotent-Replayed") == "true", err
}

// start starts a process of the shop, which says where it listens.
func start(ctx context.Context, args ...string) (p *self.Process, url string, err error) {
	if p, err = self.Start(ctx, args...); err == nil {
		url, err = p.First()
	}
	return p, url, err
}
