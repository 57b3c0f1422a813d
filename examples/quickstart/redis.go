package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	mini "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
)

// store is the Redis that the limits are kept in.
type store struct {
	rdb      redis.UniversalClient
	where    string // for people: without password
	embedded *miniredis.Miniredis
}

// connect opens the Redis at address, or an embedded one for an empty address,
// and asks it for a sign of life.
func connect(ctx context.Context, address string) (*store, error) {
	if address == "" {
		return embed()
	}
	parsed, err := url.Parse(address)
	if err != nil { // its text repeats the password
		return nil, errURL
	}
	s := &store{where: parsed.Redacted()}
	if s.rdb, err = open(address, parsed); err != nil {
		return nil, errURL
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := s.rdb.Ping(ctx).Err(); err != nil {
		s.close()
		return nil, fmt.Errorf("no answer from Redis at %s: %w\n"+
			"start it, correct -redis, or leave -redis out for an embedded one", s.where, err)
	}
	s.followCluster(ctx)
	return s, nil
}

var errURL = errors.New("-redis is not the URL of a Redis: write it like redis://localhost:6379, " +
	"rediss://user:password@host:6380 or unix:///run/redis.sock")

func embed() (*store, error) {
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		return nil, fmt.Errorf("the embedded Redis did not start: %w", err)
	}
	m.ClockTTL(true) // keys expire in real time
	standStill(m)
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr(), ContextTimeoutEnabled: true})
	return &store{rdb: rdb, where: "an embedded Redis", embedded: m}, nil
}

// standStill sets the clock when a script begins, so that it stands still within
// it, as that of Redis does since 7.2: what a script reads of two moments would
// now and then keep it from giving a permit back.
func standStill(s *miniredis.Miniredis) {
	var mu sync.Mutex
	s.Server().SetPreHook(func(_ *mini.Peer, cmd string, _ ...string) bool {
		if strings.HasPrefix(cmd, "EVAL") {
			mu.Lock()
			defer mu.Unlock()
			s.SetTime(time.Now().UTC())
		}
		return false
	})
}

// open takes further nodes of a cluster as go-redis does: redis://a?addr=b:6379.
func open(address string, parsed *url.URL) (redis.UniversalClient, error) {
	if parsed.Query().Has("addr") {
		opts, err := redis.ParseClusterURL(address)
		if err != nil {
			return nil, err
		}
		opts.ContextTimeoutEnabled = true
		return redis.NewClusterClient(opts), nil
	}
	opts, err := redis.ParseURL(address)
	if err != nil {
		return nil, err
	}
	opts.ContextTimeoutEnabled = true
	return redis.NewClient(opts), nil
}

// followCluster turns a client of one node into one of its whole cluster.
func (s *store) followCluster(ctx context.Context) {
	node, ok := s.rdb.(*redis.Client)
	if !ok {
		return
	}
	info, err := node.Info(ctx, "cluster").Result()
	if err != nil || !strings.Contains(info, "cluster_enabled:1") {
		return
	}
	opts := node.Options()
	var encryption *tls.Config
	if opts.TLSConfig != nil {
		encryption = opts.TLSConfig.Clone()
	}
	s.rdb = redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:                 []string{opts.Addr},
		Username:              opts.Username,
		Password:              opts.Password,
		TLSConfig:             encryption,
		ContextTimeoutEnabled: true,
	})
	node.Close()
}

func (s *store) close() {
	s.rdb.Close()
	if s.embedded != nil {
		s.embedded.Close()
	}
}
