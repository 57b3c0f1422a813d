package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
)

// checks are what doctor looks at, in the order in which it tells.
var checks = []check{
	{name: "version", look: version},
	{name: "eval", look: evaluates},
	{name: "write", look: writes},
	{name: "maxmemory", look: maxmemory, info: true},
	{name: "persistence", look: persistence, info: true},
	{name: "acl", look: rights},
	{name: "latency", look: latency},
	{name: "cluster", look: clustered, info: true},
	{name: "ttl", look: immortal},
	{name: "clock", look: clock},
	{name: "memory", look: memory},
}

// version asks HELLO, which every user may.
func version(ctx context.Context, x *exam, n node, _ map[string]string) verdict {
	within, cancel := x.within(ctx)
	defer cancel()
	hello, err := n.rdb.Do(within, "hello").Result()
	if err != nil {
		return judgeHello(err)
	}
	said := pairs(hello)
	return judgeVersion(fmt.Sprint(said["server"]), fmt.Sprint(said["version"]))
}

func judgeHello(err error) verdict {
	if !isReply(err) {
		return unanswered("HELLO", err)
	}
	return verdict{broken: true, detail: "HELLO: " + err.Error(), remedy: "use Redis 6.2 or later, or Valkey"}
}

func judgeVersion(server, version string) verdict {
	v := verdict{detail: server + " " + version}
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	first, _ := strconv.Atoi(major)
	second, _ := strconv.Atoi(minor)
	if first < 6 || first == 6 && second < 2 {
		v.broken, v.remedy = true, "use Redis 6.2 or later, or Valkey: the scripts call what this version lacks"
	}
	return v
}

// pairs is a map of either protocol.
func pairs(reply any) map[string]any {
	all := map[string]any{}
	switch reply := reply.(type) {
	case map[any]any:
		for name, value := range reply {
			all[fmt.Sprint(name)] = value
		}
	case []any:
		for i := 0; i+1 < len(reply); i += 2 {
			all[fmt.Sprint(reply[i])] = reply[i+1]
		}
	}
	return all
}

func maxmemory(_ context.Context, _ *exam, _ node, info map[string]string) verdict {
	policy, most, used := info["maxmemory_policy"], number(info["maxmemory"]), number(info["used_memory"])
	room := "no maxmemory"
	if most > 0 {
		room = fmt.Sprintf("%s of %s used", size(used), size(most))
	}
	v := verdict{detail: "maxmemory-policy " + policy + ", " + room}
	switch {
	case policy != "" && policy != "noeviction":
		v.broken = true
		v.detail += ": when the memory is full, Redis deletes keys that still count"
		v.remedy = "CONFIG SET maxmemory-policy noeviction, then CONFIG REWRITE"
	case most > 0 && used > most/10*9:
		v.remedy = "give Redis more memory: when it is full, limits are decided by their failure mode, and no caller gets a lock or a claim"
	}
	return v
}

// persistence finds a promise broken in two cases: writes to disk fail, since Redis then refuses all other writes too;
// or a restart cannot replay the append-only file. No persistence breaks no promise.
func persistence(ctx context.Context, x *exam, n node, info map[string]string) verdict {
	aof := info["aof_enabled"] == "1"
	within, cancel := x.within(ctx)
	defer cancel()
	save, err := n.rdb.ConfigGet(within, "save").Result()
	if err != nil && !isReply(err) {
		return unanswered("CONFIG GET", err)
	}
	rdb := err == nil && save["save"] != ""
	switch {
	case aof && info["aof_last_write_status"] == "err", rdb && info["rdb_last_bgsave_status"] == "err":
		return verdict{broken: true, detail: "the last write to disk failed, and Redis may refuse all writes (MISCONF)", remedy: seeTheLog}
	case aof:
		if lacking := x.lacks(ctx, n, "default", replayed); len(lacking) > 0 {
			return verdict{
				broken: true, detail: "an append-only file, which Redis replays as the user default, who may not: " + strings.Join(lacking, ", "),
				remedy: "ACL SETUSER default off ~* &* +@all: otherwise a restart loses what that user may not write (docs/operations.md, Least privilege)",
			}
		}
		return verdict{detail: "an append-only file"}
	case err != nil:
		return verdict{detail: "no append-only file, and whether there are snapshots was not looked at", remedy: "give doctor's user +config|get"}
	case rdb:
		return verdict{detail: "snapshots, no append-only file", remedy: "CONFIG SET appendonly yes, then CONFIG REWRITE, where locks, guards or stock are kept: a crash forgets what came after the last snapshot"}
	}
	return verdict{detail: "none: a restart forgets everything", remedy: "CONFIG SET appendonly yes, then CONFIG REWRITE, where locks, guards or stock are kept; a Redis of limits alone needs none"}
}

// latency compares round trips with the budgets.
func latency(ctx context.Context, x *exam, n node, _ map[string]string) verdict {
	const asked = 21
	took := make([]time.Duration, 0, asked)
	for range asked {
		within, cancel := x.within(ctx)
		began := time.Now()
		err := n.rdb.Ping(within).Err()
		cancel()
		if err != nil && !isReply(err) { // a refusal takes as long
			return unanswered("PING", err)
		}
		took = append(took, time.Since(began))
	}
	return judgeLatency(took)
}

func judgeLatency(took []time.Duration) verdict {
	slices.Sort(took)
	usual, worst := took[len(took)/2], took[len(took)-1]
	v := verdict{detail: fmt.Sprintf("a round trip takes %v, and %v at worst of %d", fine(usual), fine(worst), len(took))}
	switch {
	case usual > script.DefaultBudget:
		v.broken, v.remedy = true, "move Redis nearer, or set a longer Budget: each primitive waits no longer than 250 ms"
	case usual > limit.DefaultBudget:
		v.broken, v.remedy = true, "move Redis nearer, or set a longer limit.Options.Budget: a decision waits no longer than 50 ms"
	case usual > limit.DefaultBudget/5:
		v.remedy = "set MinIdleConns of the client, or a longer Budget: a new connection takes some four round trips, and a decision waits no longer than 50 ms"
	case worst > limit.DefaultBudget:
		v.remedy = "look for slow commands (SLOWLOG) and for what pauses the machine: a decision waits no longer than 50 ms"
	}
	return v
}

func fine(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

const masterDown = "ask redis-cli --cluster check which master is down, or which slots no master has: what these slots hold cannot be decided"

func clustered(ctx context.Context, x *exam, n node, info map[string]string) verdict {
	if info["role"] != "" && info["role"] != "master" {
		return verdict{broken: true, detail: "a replica: it refuses writes", remedy: writeRemedies["READONLY"]}
	}
	state := "no cluster"
	if info["cluster_enabled"] == "1" {
		state = "a cluster"
		within, cancel := x.within(ctx)
		defer cancel()
		text, err := n.rdb.ClusterInfo(within).Result()
		switch {
		case err != nil && !isReply(err):
			return unanswered("CLUSTER INFO", err)
		case err != nil:
			state += ", whose state this user may not ask"
		case !strings.Contains(text, "cluster_state:ok") || !strings.Contains(text, "cluster_slots_ok:16384"):
			return verdict{broken: true, detail: "a cluster that does not serve all slots", remedy: masterDown}
		}
	}
	replicas := len(replicasOf(info))
	v := verdict{detail: state + ", " + count(replicas, "replica")}
	if replicas == 0 {
		v.detail = state + ", no replicas"
		v.remedy = "add a replica, and sentinels or a cluster, if an outage of this server is longer than you can bear"
	}
	return v
}

// mostOff is how far a clock may be wrong. Beyond that, people notice that calendar windows end at the wrong time.
const mostOff = time.Minute

func clock(ctx context.Context, x *exam, n node, _ map[string]string) verdict {
	within, cancel := x.within(ctx)
	defer cancel()
	began := time.Now()
	there, err := n.rdb.Time(within).Result()
	if err != nil {
		return x.failed(ctx, n, "TIME", err)
	}
	took := time.Since(began)
	off := there.Sub(began.Add(took / 2)).Abs()
	return judgeClock(max(off-took/2, 0))
}

func judgeClock(off time.Duration) verdict {
	if off < time.Second {
		return verdict{detail: "within a second of this machine's"}
	}
	return verdict{
		broken: off > mostOff, detail: fmt.Sprintf("%s away from this machine's", off.Round(time.Second)),
		remedy: "set both by NTP: a calendar window ends by the clock of Redis",
	}
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// size is a number of bytes as people read it.
func size(n int64) string {
	const k = 1024
	for _, unit := range []struct {
		name string
		of   int64
	}{{"GiB", k * k * k}, {"MiB", k * k}, {"KiB", k}} {
		if n >= unit.of {
			return strconv.FormatFloat(float64(n)/float64(unit.of), 'f', 1, 64) + " " + unit.name
		}
	}
	return strconv.FormatInt(n, 10) + " B"
}
