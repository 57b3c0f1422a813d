package redistest

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// NewReplicatedCluster is NewCluster with a replica for each master, which takes over
// some two seconds after its master has died, unless args say otherwise.
func NewReplicatedCluster(tb testing.TB, args ...string) *ClusterServer {
	tb.Helper()
	args = slices.Concat([]string{
		"--cluster-node-timeout", "1000", "--cluster-replica-validity-factor", "0", "--cluster-require-full-coverage", "no",
	}, asReplica, args)
	c := NewCluster(tb, args...)
	for _, master := range c.nodes {
		s := NewStandalone(tb, append([]string{"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"}, args...)...)
		c.replicas = append(c.replicas, s)
		c.replicate(tb, s, master)
	}
	return c
}

func (c *ClusterServer) replicate(tb testing.TB, s, master *Server) {
	tb.Helper()
	replica, of := s.Admin(tb), master.Admin(tb)
	id := of.Do(tb.Context(), "cluster", "myid").Val()
	host, port, _ := net.SplitHostPort(master.addr)
	if err := replica.ClusterMeet(tb.Context(), host, port).Err(); err != nil {
		tb.Fatal(err)
	}
	Await(tb, 30*time.Second, "the replica to know its master", func() bool {
		return replica.Do(tb.Context(), "cluster", "replicate", id).Err() == nil
	})
	awaitLink(tb, s)
	for _, node := range c.nodes {
		admin := node.Admin(tb)
		Await(tb, 30*time.Second, "all masters to know the replica", func() bool {
			return strings.Contains(admin.ClusterNodes(tb.Context()).Val(), " "+s.addr+"@")
		})
	}
}

// NewReplica starts a replica of a server, and returns when it has what its master has.
func NewReplica(tb testing.TB, master *Server) *Server {
	tb.Helper()
	s := NewStandalone(tb, append([]string{"--replicaof", strings.Replace(master.addr, ":", " ", 1)}, asReplica...)...)
	awaitLink(tb, s)
	return s
}

// asReplica are the arguments by which a server logs in at its master, once it has one.
var asReplica = []string{"--masteruser", adminUser, "--masterauth", adminPassword}

func awaitLink(tb testing.TB, replica *Server) {
	tb.Helper()
	admin := replica.Admin(tb)
	Await(tb, 30*time.Second, "the replica to have what its master has", func() bool {
		return strings.Contains(admin.Info(tb.Context(), "replication").Val(), "master_link_status:up")
	})
}

// ReplicaOf is the replica of a master of NewReplicatedCluster.
func (c *ClusterServer) ReplicaOf(master *Server) *Server {
	for i, s := range c.nodes {
		if s == master {
			return c.replicas[i]
		}
	}
	return nil
}

// AwaitTakeover waits until a replica is a master, and returns when that was.
func AwaitTakeover(tb testing.TB, replica *Server) time.Time {
	tb.Helper()
	admin := replica.Admin(tb)
	Await(tb, 2*time.Minute, "the replica to take over", func() bool { // a sentinel short of CPU does nothing for 30 s
		role, err := admin.Do(context.WithoutCancel(tb.Context()), "role").Slice()
		return err == nil && role[0] == "master"
	})
	return time.Now()
}
