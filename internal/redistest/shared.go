package redistest

import (
	"sync"
	"testing"
)

// shared holds the servers that the tests of this process share.
var shared struct {
	mu  sync.Mutex
	all []*Server
}

var (
	sharedStandalone = sync.OnceValues(func() (*Server, error) {
		s, err := startServer()
		if err != nil {
			return nil, err
		}
		share(s)
		return s, nil
	})
	sharedCluster = sync.OnceValues(func() (*ClusterServer, error) {
		c, err := startCluster()
		share(c.nodes...)
		return c, err
	})
)

func share(servers ...*Server) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	for _, s := range servers {
		s.shared = true
	}
	shared.all = append(shared.all, servers...)
}

// Standalone is the server that all tests of this process share; the first
// call starts it. It cannot be stopped or paused.
func Standalone(tb testing.TB) *Server {
	tb.Helper()
	require(tb)
	s, err := sharedStandalone()
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// Cluster is the cluster that all tests of this process share; the first call
// starts it. Its nodes cannot be stopped or paused.
func Cluster(tb testing.TB) *ClusterServer {
	tb.Helper()
	require(tb)
	c, err := sharedCluster()
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// Main runs a package's tests and then waits until the shared servers are
// gone. A package needs it only to leave none running for the instant that
// their end takes otherwise:
//
//	func TestMain(m *testing.M) { redistest.Main(m) }
func Main(m *testing.M) {
	m.Run()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	for _, s := range shared.all {
		if err := s.keeper.end(); err != nil {
			panic(err)
		}
	}
}
