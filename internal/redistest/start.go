package redistest

import (
	"errors"
	"testing"
)

// Start starts a server outside of a test, for a program that measures. Its
// users are Redis' own: anybody may do anything. end stops it and removes its
// directory; without end it is gone when the process is. args are further
// redis-server arguments.
func Start(args ...string) (addr string, end func() error, err error) {
	if binary() == "" {
		return "", nil, errors.New("redis-server is not installed: apt-get install redis-server, brew install redis, or name one in REDIS_SERVER")
	}
	s, err := startServer(args...)
	if err != nil {
		return "", nil, err
	}
	return s.addr, s.keeper.end, nil
}

// Require ends a test that calls Start unless there is a redis-server for it.
func Require(tb testing.TB) {
	tb.Helper()
	require(tb)
}
