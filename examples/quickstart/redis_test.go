package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

func TestConnectFindsWhatTheURLNames(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "redis.sock")
	one := redistest.NewStandalone(t, "--unixsocket", socket)
	secret := one.Admin(t).Options().Password
	nodes := redistest.Cluster(t).Nodes()
	for _, c := range []struct {
		name, address string
		cluster       bool
	}{
		{"one server", adminURL(t, one) + "/1", false},
		{"a unix socket", "unix://" + one.Admin(t).Options().Username + ":" + secret + "@" + socket, false},
		{"any node of a cluster", adminURL(t, nodes[2]), true},
		{"several nodes of a cluster", adminURL(t, nodes[0]) + "?addr=" + nodes[1].Addr() + "&addr=" + nodes[2].Addr(), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := connect(t.Context(), c.address)
			if err != nil {
				t.Fatal(err)
			}
			defer s.close()
			cluster, ok := s.rdb.(*redis.ClusterClient)
			if ok != c.cluster {
				t.Errorf("it is a %T", s.rdb)
			}
			if ok && !cluster.Options().ContextTimeoutEnabled || !ok && !s.rdb.(*redis.Client).Options().ContextTimeoutEnabled {
				t.Error("the client does not heed deadlines")
			}
			if err := s.rdb.Ping(t.Context()).Err(); err != nil {
				t.Error(err)
			}
			if strings.Contains(s.where, secret) {
				t.Errorf("a password: %s", s.where)
			}
		})
	}
}

// adminURL is for the quickstart, which asks for INFO, and removes keys.
func adminURL(t *testing.T, s *redistest.Server) string {
	t.Helper()
	o := s.Admin(t).Options()
	return "redis://" + o.Username + ":" + o.Password + "@" + o.Addr
}
