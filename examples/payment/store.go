package main

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// store is the Redis in which the processes of the shop meet. An embedded one lives
// by the simulator's clock: leases and retention end when they would. One of its
// own, which keeps what it was told in a log, does not, so its leases are short and
// waited for.
type store struct {
	url      string
	lease    time.Duration
	embedded *miniredis.Miniredis
	command  []string
	running  *exec.Cmd
}

func newStore(ctx context.Context, command, dir string) (*store, error) {
	if command != "" {
		socket := filepath.Join(dir, "redis.sock")
		s := &store{url: "unix://" + socket, lease: 5 * time.Second, command: []string{
			command, "--port", "0", "--unixsocket", socket, "--dir", dir,
			"--save", "", "--appendonly", "yes",
		}}
		return s, s.start(ctx)
	}
	m := miniredis.NewMiniRedis()
	m.SetTime(began)
	m.ClockTTL(true)
	s := &store{lease: 30 * time.Second, embedded: m}
	err := s.start(ctx)
	s.url = "redis://" + m.Addr()
	return s, err
}

// began is when the simulator's clock begins.
var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (s *store) set(now time.Time) {
	if s.embedded != nil {
		s.embedded.SetTime(now)
	}
}

// start also starts it again, with what it had.
func (s *store) start(ctx context.Context) error {
	if s.embedded != nil {
		return s.embedded.Start()
	}
	s.running = exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	if err := s.running.Start(); err != nil {
		return err
	}
	opts, err := redis.ParseURL(s.url)
	if err != nil {
		return err
	}
	rdb := redis.NewClient(opts)
	defer rdb.Close()
	return until(ctx, "Redis", func() (bool, error) { return rdb.Ping(ctx).Err() == nil, nil })
}

func (s *store) stop() {
	if s.embedded != nil {
		s.embedded.Close()
		return
	}
	_ = s.running.Process.Kill()
	_ = s.running.Wait() // it was killed
}

// until tries until it is done: on a busy machine Redis misses the guard's budget
// now and then, and a delivery is told to come again although nothing befell it.
func until(ctx context.Context, what string, try func() (done bool, err error)) error {
	ctx, end := context.WithTimeout(ctx, 40*time.Second) // a lease and more
	defer end()
	for {
		if done, err := try(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("no end of waiting for " + what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
