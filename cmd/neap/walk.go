package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// samples is for how many keys of a primitive doctor asks MEMORY USAGE.
const samples = 100

// walk is what was found of the keys of one server: how many there are, and what some of them weigh.
type walk struct {
	err      error
	command  string // the one that failed
	looked   int
	all      bool
	immortal int
	shown    []string // some of those without a TTL
	keys     map[string]int
	weighed  map[string]int
	bytes    map[string]int64
}

// walkOf walks once for all checks.
func (x *exam) walkOf(ctx context.Context, n node) *walk {
	if x.walks == nil {
		x.walks = make([]*walk, len(x.nodes))
	}
	i := slices.Index(x.nodes, n)
	if x.walks[i] == nil {
		w := &walk{command: "SCAN", keys: map[string]int{}, weighed: map[string]int{}, bytes: map[string]int64{}}
		w.looked, w.all, w.err = x.scan(ctx, n.rdb, begins(x.Prefix, "", ""), x.Keys, func(keys []string) error { return w.look(ctx, x, n.rdb, keys) })
		x.walks[i] = w
	}
	return x.walks[i]
}

func (w *walk) look(ctx context.Context, x *exam, rdb *redis.Client, keys []string) error {
	keys = slices.DeleteFunc(keys, func(key string) bool { return kindOf(x.store, key) == "" })
	if len(keys) == 0 {
		return nil
	}
	within, cancel := x.within(ctx)
	defer cancel()
	kinds := make([]string, len(keys))
	lives := make([]*redis.Cmd, len(keys))
	weights := make([]*redis.IntCmd, len(keys))
	_, err := rdb.Pipelined(within, func(p redis.Pipeliner) error {
		for i, key := range keys {
			kinds[i] = kindOf(x.store, key)
			lives[i] = p.Do(within, "pttl", key)
			if w.keys[kinds[i]] < samples {
				weights[i] = p.MemoryUsage(within, key)
			}
			w.keys[kinds[i]]++
		}
		return nil
	})
	w.command = "PTTL"
	if err != nil && !isReply(err) {
		return err
	}
	for i, key := range keys {
		left, err := lives[i].Int64()
		if err != nil {
			return err
		}
		if left == -1 {
			if w.immortal++; len(w.shown) < 3 {
				w.shown = append(w.shown, key)
			}
		}
		if weights[i] != nil && weights[i].Err() == nil {
			w.weighed[kinds[i]]++
			w.bytes[kinds[i]] += weights[i].Val()
		}
	}
	w.command = "SCAN"
	return nil
}

// immortal finds keys of neap without a TTL.
func immortal(ctx context.Context, x *exam, n node, _ map[string]string) verdict {
	w := x.walkOf(ctx, n)
	switch {
	case w.err != nil:
		return x.failed(ctx, n, w.command, w.err)
	case w.immortal == 0:
		return verdict{detail: "every key of neap has one; " + sight(w.looked, w.all)}
	}
	return verdict{
		broken: true,
		detail: fmt.Sprintf("%s of neap without a TTL, such as %s; %s", count(w.immortal, "key"), strings.Join(w.shown, ", "), sight(w.looked, w.all)),
		remedy: "find out what ran PERSIST or restored a dump. The next call that uses a key gives it a TTL; a limit may deny that call. For a key that nobody uses: PEXPIRE KEY 86400000, which is a day",
	}
}

// memory tells what neap's keys take.
func memory(ctx context.Context, x *exam, n node, _ map[string]string) verdict {
	w := x.walkOf(ctx, n)
	if w.err != nil {
		return x.failed(ctx, n, w.command, w.err)
	}
	var parts []string
	for _, kind := range everyKind {
		if w.keys[kind] == 0 {
			continue
		}
		part := count(w.keys[kind], kind+" key")
		if w.weighed[kind] > 0 {
			part += " of about " + size(w.bytes[kind]*int64(w.keys[kind])/int64(w.weighed[kind]))
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		parts = []string{"no keys of neap"}
	}
	return verdict{detail: strings.Join(parts, ", ") + "; " + sight(w.looked, w.all)}
}
