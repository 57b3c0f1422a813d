// Package backend opens the Redis that an example plays on: the one that its -redis
// names, or an embedded one for those who have none.
package backend

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

// Backend is a Redis that answers.
type Backend struct {
	Redis redis.UniversalClient
	Where string // for people: without password
	URL   string // for [Connect] in other processes, as long as this one has not closed it

	embedded *miniredis.Miniredis
}

// FlagUsage is the usage of a flag whose value [Connect] takes.
const FlagUsage = "URL of a Redis: redis://, rediss:// or unix://; of a cluster, any one node (default an embedded one)"

// Connect opens the Redis at address, or an embedded one for an empty address,
// and asks it for a sign of life and whether it is a cluster.
func Connect(ctx context.Context, address string) (*Backend, error) {
	if address == "" {
		return Embed()
	}
	parsed, err := url.Parse(address)
	if err != nil { // its text repeats the password
		return nil, errURL
	}
	s := &Backend{Where: parsed.Redacted(), URL: address}
	if s.Redis, err = Open(address, parsed.Query().Has("addr")); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := s.Redis.Ping(ctx).Err(); err != nil {
		s.Close()
		return nil, fmt.Errorf("no answer from Redis at %s: %w\n"+
			"start it, correct -redis, or leave -redis out for an embedded one", s.Where, err)
	}
	s.followCluster(ctx)
	return s, nil
}

var errURL = errors.New("-redis is not the URL of a Redis: write it like redis://localhost:6379, " +
	"rediss://user:password@host:6380 or unix:///run/redis.sock")

// Embed starts a Redis within the process.
func Embed() (*Backend, error) {
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		return nil, fmt.Errorf("the embedded Redis did not start: %w", err)
	}
	m.ClockTTL(true) // keys expire in real time
	standStill(m)
	// It answers in the end: how long a call may last is its budget's to say.
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr(), ContextTimeoutEnabled: true, ReadTimeout: time.Minute})
	return &Backend{Redis: rdb, Where: "an embedded Redis", URL: "redis://" + m.Addr(), embedded: m}, nil
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

// Open makes a client of the server at address, or of the cluster that it is a
// node of. It asks nobody, and its error does not repeat the address, which may
// have a password. Further nodes stand in the address as go-redis has
// them: redis://a?addr=b:6379.
func Open(address string, cluster bool) (redis.UniversalClient, error) {
	if cluster {
		opts, err := redis.ParseClusterURL(address)
		if err != nil {
			return nil, errURL
		}
		opts.ContextTimeoutEnabled = true
		return redis.NewClusterClient(opts), nil
	}
	opts, err := redis.ParseURL(address)
	if err != nil {
		return nil, errURL
	}
	opts.ContextTimeoutEnabled = true
	return redis.NewClient(opts), nil
}

// followCluster turns a client of one node into one of its whole cluster.
func (s *Backend) followCluster(ctx context.Context) {
	node, ok := s.Redis.(*redis.Client)
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
	s.Redis = redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:                 []string{opts.Addr},
		Username:              opts.Username,
		Password:              opts.Password,
		TLSConfig:             encryption,
		ContextTimeoutEnabled: true,
	})
	node.Close()
}

// Close ends the client, and the server where that is embedded.
func (s *Backend) Close() {
	s.Redis.Close()
	if s.embedded != nil {
		s.embedded.Close()
	}
}
