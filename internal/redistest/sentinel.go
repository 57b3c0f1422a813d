package redistest

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Sentinel is a master, its replica, and a sentinel that watches them. The replica takes
// over some three seconds after its master has died.
type Sentinel struct {
	Master, Replica *Server

	sentinel *Server
}

// masterName is what the sentinel calls the master.
const masterName = "main"

// NewSentinel starts servers that no other test uses, and stops them when the test ends.
func NewSentinel(tb testing.TB) *Sentinel {
	tb.Helper()
	s := &Sentinel{Master: NewStandalone(tb, asReplica...)}
	s.Replica = NewReplica(tb, s.Master)
	host, port, _ := net.SplitHostPort(s.Master.addr)
	var err error
	s.sentinel, err = startProcess(func(dir, own string) ([]string, error) {
		file := filepath.Join(dir, "sentinel.conf") // the sentinel rewrites it
		return []string{binary(), file, "--sentinel"}, os.WriteFile(file, []byte(strings.Join([]string{
			"port " + own, "bind 127.0.0.1", "dir " + dir,
			fmt.Sprintf("sentinel monitor %s %s %s 1", masterName, host, port),
			fmt.Sprintf("sentinel auth-user %s %s", masterName, adminUser),
			fmt.Sprintf("sentinel auth-pass %s %s", masterName, adminPassword),
			"sentinel down-after-milliseconds " + masterName + " 3000",
			"sentinel failover-timeout " + masterName + " 10000",
		}, "\n")), 0o600)
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.sentinel.keeper.end(); err != nil {
			tb.Errorf("redistest: ending the sentinel: %v", err)
		}
	})
	asked := redis.NewSentinelClient(&redis.Options{Addr: s.sentinel.addr})
	tb.Cleanup(func() { asked.Close() })
	Await(tb, time.Minute, "the sentinel to know the replica", func() bool {
		all, err := asked.Replicas(tb.Context(), masterName).Result()
		return err == nil && len(all) == 1 && all[0]["flags"] == "slave" && all[0]["master-link-status"] == "ok"
	})
	return s
}

// Client is a client of the library's, which asks the sentinel for the master. It is closed when the test ends.
func (s *Sentinel) Client(tb testing.TB) *redis.Client {
	tb.Helper()
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: masterName, SentinelAddrs: []string{s.sentinel.addr}, Username: User, Password: Password,
	})
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

// AdminURL is the URL by which an Admin connects through the sentinel.
func (s *Sentinel) AdminURL() string {
	query := url.Values{"master_name": {masterName}, "addr": {s.sentinel.addr}, "username": {adminUser}, "password": {adminPassword}}
	return "redis://" + s.sentinel.addr + "?" + query.Encode()
}
