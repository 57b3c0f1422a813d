package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	masters = 3
	slots   = 16384
)

// ClusterServer is a Redis Cluster of three masters, without replicas unless it was
// made by NewReplicatedCluster.
type ClusterServer struct {
	nodes    []*Server
	replicas []*Server // of the master at the same place
}

// NewCluster starts a cluster that no other test uses, and stops it when the
// test ends. args are further redis-server arguments for every node.
func NewCluster(tb testing.TB, args ...string) *ClusterServer {
	tb.Helper()
	require(tb)
	c, err := startCluster(args...)
	if c != nil {
		tb.Cleanup(func() { endServers(tb, c.nodes...) })
	}
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// startCluster returns the nodes it has started with an error too, for the
// caller to end.
func startCluster(args ...string) (*ClusterServer, error) {
	args = append([]string{"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
		"--cluster-node-timeout", "15000"}, append(users(), args...)...)
	c := &ClusterServer{}
	for range masters {
		s, err := startServer(args...)
		if err != nil {
			return c, err
		}
		c.nodes = append(c.nodes, s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := c.join(ctx); err != nil {
		return c, fmt.Errorf("redistest: forming the cluster: %w", err)
	}
	return c, nil
}

// join gives every node its third of the slots, introduces the nodes to each
// other and waits until all of them agree.
func (c *ClusterServer) join(ctx context.Context) error {
	clients := make([]*redis.Client, masters)
	for i, s := range c.nodes {
		rdb := redis.NewClient(s.options(adminUser, adminPassword))
		defer rdb.Close()
		clients[i] = rdb
		first, last := i*slots/masters, (i+1)*slots/masters-1
		if err := addSlots(ctx, rdb, first, last); err != nil {
			return err
		}
		// Distinct epochs spare the nodes a vote on who moves first.
		if err := rdb.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return err
		}
	}
	for i, rdb := range clients {
		for _, s := range c.nodes[:i] {
			host, port, err := net.SplitHostPort(s.addr)
			if err != nil {
				return err
			}
			if err := rdb.ClusterMeet(ctx, host, port).Err(); err != nil {
				return err
			}
		}
	}
	for !c.agree(ctx, clients) {
		select {
		case <-ctx.Done():
			return errors.New("the nodes do not agree on a cluster of three masters")
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

func addSlots(ctx context.Context, rdb *redis.Client, first, last int) error {
	err := rdb.ClusterAddSlotsRange(ctx, first, last).Err()
	if err != nil && strings.Contains(strings.ToLower(err.Error()), "unknown subcommand") { // before Redis 7
		return rdb.ClusterAddSlots(ctx, seq(first, last)...).Err()
	}
	return err
}

func seq(first, last int) []int {
	all := make([]int, 0, last-first+1)
	for i := first; i <= last; i++ {
		all = append(all, i)
	}
	return all
}

// agree says whether every node serves all slots, three masters hold them and
// the node knows each by its address.
func (c *ClusterServer) agree(ctx context.Context, clients []*redis.Client) bool {
	for _, rdb := range clients {
		info, err := rdb.ClusterInfo(ctx).Result()
		if err != nil {
			return false
		}
		for _, want := range []string{"state:ok", "known_nodes:3", "size:3", "slots_ok:16384"} {
			if !strings.Contains(info, "cluster_"+want+"\r\n") {
				return false
			}
		}
		nodes, err := rdb.ClusterNodes(ctx).Result()
		if err != nil {
			return false
		}
		for _, s := range c.nodes {
			if !strings.Contains(nodes, " "+s.addr+"@") {
				return false
			}
		}
	}
	return true
}

// Nodes are the masters, in the order of their slots.
func (c *ClusterServer) Nodes() []*Server { return c.nodes }

// NodeOf is the master whose slots hold key.
func (c *ClusterServer) NodeOf(tb testing.TB, key string) *Server {
	tb.Helper()
	for _, s := range c.nodes {
		if !s.is(running) {
			continue
		}
		slot, err := s.Admin(tb).ClusterKeySlot(tb.Context(), key).Result()
		if err != nil {
			tb.Fatal(err)
		}
		for i, s := range c.nodes {
			if int(slot) < (i+1)*slots/masters {
				return s
			}
		}
	}
	tb.Fatal("redistest: NodeOf: no node runs")
	return nil
}

// HalfMoveSlot leaves the slot of a key half way to another master, which a key
// that is not there yet is asked of.
func (c *ClusterServer) HalfMoveSlot(tb testing.TB, key string) (from, to *Server) {
	tb.Helper()
	from = c.NodeOf(tb, key)
	i := slices.Index(c.nodes, from)
	to = c.nodes[(i+1)%len(c.nodes)]
	c.setSlot(tb, to, key, "importing", from)
	c.setSlot(tb, from, key, "migrating", to)
	return from, to
}

// MoveSlot brings the slot of a key, and that one key, to another master. It
// calls between before the key has moved, and when its slot has not yet.
func (c *ClusterServer) MoveSlot(tb testing.TB, key string, between func()) (to *Server) {
	tb.Helper()
	from, to := c.HalfMoveSlot(tb, key)
	between()
	host, port, _ := strings.Cut(to.addr, ":")
	if err := from.Admin(tb).Do(tb.Context(), "migrate", host, port, "", 0, 5000,
		"auth2", adminUser, adminPassword, "keys", key).Err(); err != nil {
		tb.Fatal(err)
	}
	between()
	c.setSlot(tb, to, key, "node", to)
	c.setSlot(tb, from, key, "node", to)
	for _, node := range c.nodes {
		if node != to && node != from {
			c.setSlot(tb, node, key, "node", to)
		}
	}
	return to
}

func (c *ClusterServer) setSlot(tb testing.TB, on *Server, key, what string, who *Server) {
	tb.Helper()
	id := who.Admin(tb).Do(tb.Context(), "cluster", "myid").Val()
	slot := on.Admin(tb).ClusterKeySlot(tb.Context(), key).Val()
	var err error
	Await(tb, time.Minute, "a slot that is set", func() bool {
		err = on.Admin(tb).Do(tb.Context(), "cluster", "setslot", slot, what, id).Err()
		// The node learns from the new owner to forget the keys that have stayed.
		return err == nil || !strings.Contains(err.Error(), "still hold keys")
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// Client is a client of the library's: it connects as [User] with go-redis'
// default options as changed by change, and is closed when the test ends.
func (c *ClusterServer) Client(tb testing.TB, change ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	return c.connect(tb, User, Password, change)
}

// Admin is a client of the harness, which may do everything: for what a test
// prepares, breaks and looks at.
func (c *ClusterServer) Admin(tb testing.TB, change ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	return c.connect(tb, adminUser, adminPassword, append([]func(*redis.ClusterOptions){patientCluster}, change...))
}

func (c *ClusterServer) connect(tb testing.TB, user, password string, change []func(*redis.ClusterOptions)) *redis.ClusterClient {
	opts := &redis.ClusterOptions{Username: user, Password: password}
	for _, s := range c.nodes {
		opts.Addrs = append(opts.Addrs, s.addr)
	}
	for _, f := range change {
		if f != nil {
			f(opts)
		}
	}
	rdb := redis.NewClusterClient(opts)
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}
