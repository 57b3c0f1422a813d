package redistest

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		helper()
		return
	}
	Main(m)
}

func TestStandaloneIsShared(t *testing.T) {
	t.Parallel()
	one, two := Standalone(t), Standalone(t)
	if one != two {
		t.Fatalf("got two servers, %s and %s, in one process, want one", one.Addr(), two.Addr())
	}
	if _, port, err := net.SplitHostPort(one.Addr()); err != nil || port == "6379" {
		t.Fatalf("the server listens on %q, %v, want another port than 6379", one.Addr(), err)
	}
	if err := one.Client(t).Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if msg := fatal(t, func(tb testing.TB) { one.Pause(tb) }); !strings.Contains(msg, "NewStandalone") {
		t.Errorf("pausing the shared server: got the failure %q, want one that names NewStandalone", msg)
	}
}

func TestStopAndStartKeepThePort(t *testing.T) {
	t.Parallel()
	s := NewStandalone(t, "--appendonly", "yes")
	rdb := s.Admin(t)
	if err := rdb.Set(t.Context(), "kept", "1", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	s.Stop(t)
	if conn, err := net.Dial("tcp", s.Addr()); err == nil {
		conn.Close()
		t.Fatal("a stopped server accepts connections, want none")
	}
	s.Start(t)
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatalf("a server that was started again: got %v, want a connection", err)
	}
	conn.Close()
	if got, err := rdb.Get(t.Context(), "kept").Result(); err != nil || got != "1" {
		t.Fatalf("after a restart with an append-only file: got %q, %v, want \"1\"", got, err)
	}
	if msg := fatal(t, func(tb testing.TB) { s.Start(tb) }); msg == "" {
		t.Error("a running server was started again, want a failure")
	}
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	s := NewStandalone(t)
	rdb := s.Client(t, func(o *redis.Options) { o.MaxRetries = -1; o.ReadTimeout = time.Second })
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s.Pause(t)
	if err := rdb.Ping(t.Context()).Err(); err == nil {
		t.Fatal("a paused server answered, want an error")
	}
	s.Resume(t)
	Await(t, 10*time.Second, "the resumed server to answer", func() bool {
		return rdb.Ping(t.Context()).Err() == nil
	})
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	msg := fatal(t, func(tb testing.TB) { NewStandalone(tb, "--no-such-option", "1") })
	if !strings.Contains(msg, "no-such-option") {
		t.Errorf("got the failure %q, want the server's log in it", msg)
	}
}

func TestClusterIsWhole(t *testing.T) {
	t.Parallel()
	c := Cluster(t)
	prefix := c.Prefix(t)
	rdb := c.Admin(t)
	seen := map[string]bool{}
	for _, subject := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"} {
		key := prefix + ":{" + subject + "}"
		if err := rdb.Set(t.Context(), key, subject, time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		node := c.NodeOf(t, key)
		if got, err := node.Admin(t).Get(t.Context(), key).Result(); err != nil || got != subject {
			t.Fatalf("NodeOf(%q) is %s, which says %q, %v, want %q", key, node.Addr(), got, err, subject)
		}
		seen[node.Addr()] = true
	}
	if len(seen) != masters || len(c.Nodes()) != masters {
		t.Errorf("12 keys lie on %d of %d masters, want all %d", len(seen), len(c.Nodes()), masters)
	}
}

func TestAClusterNodeComesBack(t *testing.T) {
	t.Parallel()
	c := NewCluster(t)
	rdb := c.Admin(t)
	node := c.NodeOf(t, "x")
	node.Stop(t)
	node.Start(t)
	Await(t, 30*time.Second, "the restarted node to serve its slots", func() bool {
		return rdb.Set(t.Context(), "x", "1", time.Minute).Err() == nil
	})
}
