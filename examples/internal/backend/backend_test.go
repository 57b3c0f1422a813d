package backend_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/examples/internal/backend"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

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
		{"one server", one.AdminURL() + "/1", false},
		{"a unix socket", "unix://" + one.Admin(t).Options().Username + ":" + secret + "@" + socket, false},
		{"any node of a cluster", nodes[2].AdminURL(), true},
		{"several nodes of a cluster", nodes[0].AdminURL() + "?addr=" + nodes[1].Addr() + "&addr=" + nodes[2].Addr(), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := backend.Connect(t.Context(), c.address)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			cluster, ok := s.Redis.(*redis.ClusterClient)
			if ok != c.cluster {
				t.Errorf("got a %T, want a client of a cluster: %t", s.Redis, c.cluster)
			}
			if ok && !cluster.Options().ContextTimeoutEnabled || !ok && !s.Redis.(*redis.Client).Options().ContextTimeoutEnabled {
				t.Error("the client does not heed deadlines, want ContextTimeoutEnabled")
			}
			if err := s.Redis.Ping(t.Context()).Err(); err != nil {
				t.Error(err)
			}
			if strings.Contains(s.Where, secret) {
				t.Errorf("got Where %s, want it without the password", s.Where)
			}
		})
	}
}

// TestNoErrorRepeatsThePassword of an address that is none.
func TestNoErrorRepeatsThePassword(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"redis://u:s3cret@host:bad port", "redis://u:s3cret@%zz", "s3cret://u@host"} {
		for _, cluster := range []bool{false, true} {
			if _, err := backend.Open(address, cluster); err == nil || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s, cluster %t: got %v, want an error without the password", address, cluster, err)
			}
		}
		if _, err := backend.Connect(t.Context(), address); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v, want an error without the password", address, err)
		}
	}
}

// TestTheEmbeddedClock stands still within a script and goes on between two.
func TestTheEmbeddedClock(t *testing.T) {
	t.Parallel()
	s, err := backend.Embed()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	read := func() [2]string {
		clocks, err := s.Redis.Eval(t.Context(), `local a = redis.call('TIME')
for i = 1, 100000 do end
local b = redis.call('TIME')
return {a[1] .. ' ' .. a[2], b[1] .. ' ' .. b[2]}`, []string{"k"}).StringSlice()
		if err != nil {
			t.Fatal(err)
		}
		return [2]string(clocks)
	}
	first := read()
	if first[0] != first[1] {
		t.Errorf("within a script: got the clocks %q, want no time to pass", first)
	}
	if second := read(); second[0] == first[0] {
		t.Errorf("in two scripts: got the clocks %q and %q, want time to pass between them", first, second)
	}
}
