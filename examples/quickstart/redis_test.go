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
	const secret = "a-password"
	socket := filepath.Join(t.TempDir(), "redis.sock")
	one := redistest.NewStandalone(t, "--requirepass", secret, "--unixsocket", socket).Addr()
	var nodes []string
	for _, node := range redistest.Cluster(t).Nodes() {
		nodes = append(nodes, node.Addr())
	}
	for _, c := range []struct {
		name, address string
		cluster       bool
	}{
		{"one server", "redis://:" + secret + "@" + one + "/1", false},
		{"a unix socket", "unix://:" + secret + "@" + socket, false},
		{"any node of a cluster", "redis://" + nodes[2], true},
		{"several nodes of a cluster", "redis://" + nodes[0] + "?addr=" + nodes[1] + "&addr=" + nodes[2], true},
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
