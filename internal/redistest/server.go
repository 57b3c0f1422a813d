package redistest

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is one redis-server process. Its methods may be called from several
// goroutines.
type Server struct {
	addr   string
	keeper *keeper
	shared bool

	mu    sync.Mutex
	state state

	admins sync.Map // by the test that has the client
}

type state string

const (
	running state = "running"
	paused  state = "paused"
	stopped state = "stopped"
)

// NewStandalone starts a server that no other test uses, and stops it when
// the test ends. args are further redis-server arguments, such as
// "--appendonly", "yes".
func NewStandalone(tb testing.TB, args ...string) *Server {
	tb.Helper()
	require(tb)
	s, err := startServer(append(users(), args...)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { endServers(tb, s) })
	return s
}

func startServer(args ...string) (*Server, error) {
	return startProcess(func(dir, port string) ([]string, error) {
		return append([]string{binary(), "--port", port, "--bind", "127.0.0.1", "--dir", dir,
			"--save", "", "--appendonly", "no", "--daemonize", "no", "--logfile", "", "--loglevel", "notice"}, args...), nil
	})
}

// startProcess tries several ports, since other processes draw from the same.
func startProcess(command func(dir, port string) ([]string, error)) (*Server, error) {
	var failed error
	for range 5 {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		k, err := newKeeper(func(dir string) ([]string, error) { return command(dir, strconv.Itoa(port)) })
		if err != nil {
			return nil, err
		}
		if failed = k.start(); failed == nil {
			return &Server{addr: localAddr(port), keeper: k, state: running}, nil
		}
		if err := k.end(); err != nil {
			return nil, err
		}
	}
	return nil, failed
}

func endServers(tb testing.TB, servers ...*Server) {
	for _, s := range servers {
		if s.is(running) {
			if err := s.refusals(); err != nil {
				tb.Errorf("%v", err)
			}
		}
		if err := s.keeper.end(); err != nil {
			tb.Errorf("redistest: ending %s: %v", s.addr, err)
		}
	}
}

// Addr is the server's address, host:port.
func (s *Server) Addr() string { return s.addr }

// Client is a client of the library's: it connects as [User] with go-redis'
// default options as changed by change, and is closed when the test ends.
func (s *Server) Client(tb testing.TB, change ...func(*redis.Options)) *redis.Client {
	return s.connect(tb, User, Password, change)
}

// Unhurried is a client of the library's that waits for its replies; see [Unhurried].
func (s *Server) Unhurried(tb testing.TB) *redis.Client {
	rdb := Unhurried(s.options(User, Password))
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

// Admin is a client of the harness, which may do everything: for what a test
// prepares, breaks and looks at. Without change, all calls of a test return one client.
func (s *Server) Admin(tb testing.TB, change ...func(*redis.Options)) *redis.Client {
	tb.Helper()
	if len(change) > 0 {
		return s.connect(tb, adminUser, adminPassword, append([]func(*redis.Options){patient}, change...))
	}
	if rdb, is := s.admins.Load(tb); is {
		return rdb.(*redis.Client)
	}
	rdb := s.connect(tb, adminUser, adminPassword, []func(*redis.Options){patient})
	s.admins.Store(tb, rdb)
	tb.Cleanup(func() { s.admins.Delete(tb) })
	return rdb
}

// AdminURL is the URL by which an Admin connects, for programs that take one.
func (s *Server) AdminURL() string {
	return "redis://" + adminUser + ":" + adminPassword + "@" + s.addr
}

func (s *Server) connect(tb testing.TB, user, password string, change []func(*redis.Options)) *redis.Client {
	opts := s.options(user, password)
	for _, f := range change {
		if f != nil {
			f(opts)
		}
	}
	rdb := redis.NewClient(opts)
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

// patient has a client wait longer than a machine that is busy with other tests
// stands still. The defaults, 3 s to read and 5 s to connect, are too short for that.
func patient(o *redis.Options) {
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = patience, patience, patience, patience
}

func patientCluster(o *redis.ClusterOptions) {
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = patience, patience, patience, patience
}

const patience = 30 * time.Second

func (s *Server) options(user, password string) *redis.Options {
	return &redis.Options{Addr: s.addr, Username: user, Password: password}
}

// Stop kills the server, as a crash would; its directory stays.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	s.turn(tb, stopped, "stop", running, paused)
}

// Start starts a stopped server again on the same port, and returns when it
// accepts connections.
func (s *Server) Start(tb testing.TB) {
	tb.Helper()
	s.turn(tb, running, "start", stopped)
}

// Pause freezes the server (SIGSTOP): the kernel goes on accepting
// connections, and nothing is answered until Resume.
func (s *Server) Pause(tb testing.TB) {
	tb.Helper()
	s.turn(tb, paused, "pause", running)
}

// Resume lets a paused server run on; what arrived meanwhile is executed.
func (s *Server) Resume(tb testing.TB) {
	tb.Helper()
	s.turn(tb, running, "resume", paused)
}

func (s *Server) turn(tb testing.TB, to state, verb string, from ...state) {
	tb.Helper()
	if s.shared {
		tb.Fatalf("redistest: %s: other tests use this server; take one from NewStandalone or NewCluster", verb)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(from, s.state) {
		tb.Fatalf("redistest: %s: the server is %s", verb, s.state)
	}
	do := func() error { return s.keeper.tell(verb) }
	if verb == "start" {
		do = s.keeper.start
	}
	if err := do(); err != nil {
		tb.Fatal(err)
	}
	s.state = to
}

func (s *Server) is(want state) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == want
}
