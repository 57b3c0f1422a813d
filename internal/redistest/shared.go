package redistest

import (
	"fmt"
	"os"
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
		s, err := startServer(users()...)
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

// Main runs a package's tests, ends the shared servers and then calls what is to be
// called at the end. It fails when a server refused the library a command, which a
// test may not have seen:
//
//	func TestMain(m *testing.M) { redistest.Main(m) }
func Main(m *testing.M, atEnd ...func()) {
	code := m.Run()
	shared.mu.Lock()
	servers := shared.all
	shared.mu.Unlock()
	for _, s := range servers {
		if err := s.refusals(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
		if err := s.keeper.end(); err != nil {
			panic(err)
		}
	}
	for _, do := range atEnd {
		do()
	}
	os.Exit(code)
}
