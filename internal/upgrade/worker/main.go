// Worker is a process of a user, for the test of upgrades: it calls the library's public
// API as it is told by lines of JSON, and answers each by a line. It ends when its
// standard input does, after its calls and what the library does in the background.
//
// It is compiled with the library of this tree and with that of the baseline. So it uses
// only what both have.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/upgrade/wire"
)

// patience is how long a call waits on a machine that is busy.
const patience = 30 * time.Second

func main() {
	log.SetFlags(0)
	if err := run(os.Stdin, os.Stdout); err != nil {
		log.Fatalln("worker:", err)
	}
}

// worker is one process.
type worker struct {
	plain, hidden *store.Store // without and with a secret

	mu   sync.Mutex
	made map[string]any // primitives, by what they are and their wire.Conf
	has  map[string]any // what calls got, by wire.Call.As
}

func run(in io.Reader, out io.Writer) error {
	addrs := flag.String("redis", "", "the address of a server, or those of a cluster with commas between them")
	prefix := flag.String("prefix", "neap:upgrade", "begins every key")
	flag.Parse()

	nodes := strings.Split(*addrs, ",")
	rdb := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: nodes, IsClusterMode: len(nodes) > 1,
		DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience, PoolTimeout: patience,
	})
	defer rdb.Close()
	o := store.Options{Prefix: *prefix, Budget: patience, FirstContact: patience}
	plain, err := store.Open(rdb, &o)
	if err != nil {
		return fmt.Errorf("opening the store: %w", err)
	}
	o.SubjectSecret = []byte(strings.Repeat("secret of both ", 3))
	hidden, err := store.Open(rdb, &o)
	if err != nil {
		return fmt.Errorf("opening the store with a secret: %w", err)
	}
	w := &worker{plain: plain, hidden: hidden, made: map[string]any{}, has: map[string]any{}}
	if err := w.serve(in, out); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(plain.Drain(ctx), hidden.Drain(ctx))
}

// serve answers every call that comes, each on a goroutine of its own.
func (w *worker) serve(in io.Reader, out io.Writer) error {
	var calls sync.WaitGroup
	var writing sync.Mutex
	to := json.NewEncoder(out)
	for from := json.NewDecoder(bufio.NewReader(in)); ; {
		var c wire.Call
		if err := from.Decode(&c); errors.Is(err, io.EOF) {
			calls.Wait()
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a call: %w", err)
		}
		calls.Go(func() {
			a := w.answer(&c)
			writing.Lock()
			defer writing.Unlock()
			if err := to.Encode(a); err != nil {
				log.Fatalln("worker: answering:", err)
			}
		})
	}
}

// op is what a worker does for one kind of call.
type op func(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error

// ops are the calls by their names.
var ops = func() map[string]op {
	all := map[string]op{}
	for _, some := range []map[string]op{limitOps, lockOps, guardOps, stockOps} {
		maps.Copy(all, some)
	}
	return all
}()

func (w *worker) answer(c *wire.Call) *wire.Answer {
	a := &wire.Answer{ID: c.ID}
	err := fmt.Errorf("the worker knows no call %q", c.Op)
	if op := ops[c.Op]; op != nil {
		err = op(context.Background(), w, c, a)
	}
	if err != nil {
		a.Word, a.Text = wordOf(err), err.Error()
	}
	return a
}

// store is the one that a primitive is made on.
func (w *worker) store(c *wire.Conf) *store.Store {
	if c.Secret {
		return w.hidden
	}
	return w.plain
}

// one makes a primitive of a Conf, or returns the one that was made before.
func one[T any](w *worker, what string, c *wire.Conf, create func() (T, error)) (T, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return *new(T), fmt.Errorf("a Conf: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key := what + string(text)
	if made, ok := w.made[key]; ok {
		return made.(T), nil
	}
	made, err := create()
	if err == nil {
		w.made[key] = made
	}
	return made, err
}

// keep notes what a call got.
func (w *worker) keep(c *wire.Call, v any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.has[c.As] = v
}

// got is what an earlier call got.
func got[T any](w *worker, c *wire.Call) (T, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v, ok := w.has[c.Of].(T)
	if !ok {
		return v, fmt.Errorf("the worker has no %T called %q", v, c.Of)
	}
	return v, nil
}

// forget drops what a call got, since it is over.
func (w *worker) forget(c *wire.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.has, c.Of)
}

func span(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
