package main

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// fleet are the servers behind a URL.
type fleet struct {
	app    *app
	client redis.UniversalClient
}

// node is one of them.
type node struct {
	addr string
	rdb  *redis.Client
}

// masters are the servers that decide, by their addresses.
func (f *fleet) masters(ctx context.Context) ([]node, error) {
	if c, is := f.client.(*redis.ClusterClient); is {
		within, cancel := f.app.within(ctx)
		defer cancel()
		all, err := gather(func(add func(context.Context, *redis.Client) error) error { return c.ForEachMaster(within, add) })
		switch {
		case err != nil:
			err = unreachable(strings.Join(c.Options().Addrs, ", "), err)
		case len(all) == 0:
			err = errNoSlots
		}
		return all, err
	}
	rdb, is := f.client.(*redis.Client)
	if !is {
		return nil, errors.New("this client does not tell its servers")
	}
	return []node{{rdb.Options().Addr, rdb}}, nil
}

var errNoSlots = &failure{exitAway, errors.New("a cluster that serves no slots: " + masterDown)}

func gather(each func(add func(context.Context, *redis.Client) error) error) (all []node, err error) {
	var mu sync.Mutex
	err = each(func(_ context.Context, rdb *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, node{rdb.Options().Addr, rdb})
		return nil
	})
	slices.SortFunc(all, func(a, b node) int { return strings.Compare(a.addr, b.addr) })
	return all, err
}

// readers are servers that together have every key: for each master a replica that answers, or the master if there is
// none.
func (f *fleet) readers(ctx context.Context) (all []node, replicas int, err error) {
	masters, err := f.masters(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, m := range masters {
		reader := m
		info, _ := infoOf(ctx, f.app, m.rdb)
		for _, addr := range replicasOf(info) {
			if rdb := f.reader(m, addr); f.answers(ctx, rdb) {
				reader = node{addr, rdb}
				replicas++
				break
			}
		}
		all = append(all, reader)
	}
	return all, replicas, nil
}

// reader is a client of a replica, with the master's options.
func (f *fleet) reader(master node, addr string) *redis.Client {
	o := *master.rdb.Options()
	o.Addr, o.Dialer, o.MaintNotificationsConfig = addr, nil, nil
	if _, cluster := f.client.(*redis.ClusterClient); cluster {
		o.OnConnect = func(ctx context.Context, c *redis.Conn) error { return c.ReadOnly(ctx).Err() }
	}
	rdb := redis.NewClient(&o)
	rdb.AddHook(&f.app.spent)
	f.app.keep(rdb)
	return rdb
}

func (f *fleet) answers(ctx context.Context, rdb *redis.Client) bool {
	ctx, cancel := context.WithTimeout(ctx, min(f.app.Timeout, time.Second))
	defer cancel()
	return rdb.Time(ctx).Err() == nil
}

// replicasOf are the addresses of the replicas that INFO lists and that are up to date.
func replicasOf(info map[string]string) (addrs []string) {
	for name, line := range info {
		number, is := strings.CutPrefix(name, "slave")
		if !is || strings.Trim(number, "0123456789") != "" {
			continue
		}
		part := map[string]string{}
		for pair := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(pair, "=")
			part[name] = value
		}
		if part["state"] == "online" {
			addrs = append(addrs, net.JoinHostPort(part["ip"], part["port"]))
		}
	}
	slices.Sort(addrs)
	return addrs
}

// infoOf is what INFO says.
func infoOf(ctx context.Context, a *app, rdb *redis.Client) (info map[string]string, err error) {
	ctx, cancel := a.within(ctx)
	defer cancel()
	text, err := rdb.Info(ctx).Result()
	if err != nil {
		return nil, err
	}
	info = map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			info[name] = value
		}
	}
	return info, nil
}

// owner is the master that has a key.
func (f *fleet) owner(ctx context.Context, key string) (node, error) {
	all, err := f.masters(ctx)
	if err != nil {
		return node{}, err
	}
	if c, is := f.client.(*redis.ClusterClient); is {
		within, cancel := f.app.within(ctx)
		defer cancel()
		rdb, err := c.MasterForKey(within, key)
		if err != nil {
			return node{}, err
		}
		return node{rdb.Options().Addr, rdb}, nil
	}
	return all[0], nil
}

// spending counts the commands that clients send. It is a hook of theirs.
type spending struct{ commands atomic.Int64 }

func (s *spending) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *spending) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.commands.Add(1)
		return next(ctx, cmd)
	}
}

func (s *spending) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		s.commands.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}
