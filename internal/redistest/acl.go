package redistest

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/lua"
)

// User and Password are the library's on every server. It may do what [Rules]
// say and nothing else. The default user is for programs that know nothing but an
// address. It may do that too, and PEXPIREAT and SELECT, which a server needs to
// replay its append-only file.
const (
	User     = "neap"
	Password = "the-password-of-neap"
)

const (
	adminUser     = "harness"
	adminPassword = "the-password-of-the-harness"
)

// Rules are the least that the library's user needs, as docs/operations.md has
// them: what runs a script, what go-redis sends by itself, what waiters subscribe
// with, and what the scripts call.
const Rules = "resetchannels &neap:* ~neap:* -@all " +
	"+evalsha +eval +script|load " +
	"+asking +cluster|slots +command +ping " +
	"+ssubscribe +subscribe +sunsubscribe +unsubscribe " +
	"+del +get +hdel +hkeys +hlen +hmget +hscan +hset +incrby +lindex +llen +lpop +lrange +lrem +ltrim " +
	"+pexpire +pttl +publish +rpush +set +spublish +time " +
	"+zadd +zcard +zcount +zrangebyscore +zrem +zremrangebyscore +zscore"

// LoadedRules are [Rules] for a server that an admin loads the scripts into.
func LoadedRules() string { return strings.Replace(Rules, " +eval +script|load", "", 1) }

// NewUser makes a user who may do what rules say, on each of the servers, with
// the library's Password. A client connects as it with the name that is
// returned; the server's refusals name it. What it is refused fails no test.
func NewUser(tb testing.TB, rules string, servers ...*Server) (name string) {
	tb.Helper()
	name = "user-script-" + strings.ToLower(rand.Text()[:10])
	words := append([]string{"reset", "on", ">" + Password}, strings.Fields(rules)...)
	for _, s := range servers {
		if err := s.Admin(tb).ACLSetUser(tb.Context(), name, words...).Err(); err != nil {
			tb.Fatal(err)
		}
	}
	return name
}

// Without is [Rules] without one word, which is in them.
func Without(tb testing.TB, right string) string {
	tb.Helper()
	rules := strings.Replace(" "+Rules+" ", " "+right+" ", " ", 1)
	if rules == " "+Rules+" " {
		tb.Fatalf("redistest: the rules do not have %s", right)
	}
	return rules
}

// LoadScripts has a server know every script, as an admin does for users of
// [LoadedRules].
func (s *Server) LoadScripts(tb testing.TB) {
	tb.Helper()
	sources := slices.Collect(maps.Values(scripts()))
	for _, kind := range lua.Kinds { // those of limiters of one policy
		lua.Settle(kind)
		for _, bans := range []bool{false, true} {
			lua.Take(bans, false, kind)
			lua.Take(bans, true, kind)
		}
	}
	for _, j := range lua.Made() { // with those of the limiters that there are
		sources = append(sources, j.Text)
	}
	for _, source := range sources {
		if err := s.Admin(tb).ScriptLoad(tb.Context(), source).Err(); err != nil {
			tb.Fatal(err)
		}
	}
}

// scripts are the library's, by their SHA.
var scripts = sync.OnceValue(func() map[string]string {
	files, err := fs.ReadDir(lua.FS, ".")
	if err != nil {
		panic(err)
	}
	sources := map[string]string{}
	for _, file := range files {
		source, err := fs.ReadFile(lua.FS, file.Name())
		if err != nil {
			panic(err)
		}
		sources[redis.NewScript(string(source)).Hash()] = string(source)
	}
	return sources
})

// users are the arguments that give a server its users, at each of its starts.
// They outdo a --requirepass.
func users() (args []string) {
	for _, line := range []string{
		adminUser + " on >" + adminPassword + " ~* &* +@all",
		User + " on >" + Password + " " + Rules,
		// A server replays its append-only file as the default user and drops what
		// that user may not do: PEXPIREAT, which it has written for a script's
		// PEXPIRE, and SELECT, which stands first and which servers after Redis 7.0
		// check too.
		"default on nopass " + Rules + " +pexpireat +select",
	} {
		args = append(append(args, "--user"), strings.Fields(line)...)
	}
	return args
}

// refusals are what the server refused to its users, beyond the handshake's
// CLIENT SETINFO, which go-redis does not mind. A limiter that falls back hides
// them.
func (s *Server) refusals() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	rdb := redis.NewClient(s.options(adminUser, adminPassword))
	defer rdb.Close()
	// ACLLog of go-redis cannot read the client id 2^64-1, by which a server names
	// itself when it replays its append-only file.
	log, err := rdb.Do(ctx, "acl", "log", 100).Slice()
	if err != nil {
		return fmt.Errorf("redistest: %s: %w", s.addr, err)
	}
	for _, one := range log {
		e, ok := one.(map[any]any)
		if !ok {
			return fmt.Errorf("redistest: %s: ACL LOG has a %T, not a map", s.addr, one)
		}
		user, reason, object := e["username"], e["reason"], e["object"]
		if (user == User || user == "default") && reason != "auth" && object != "client|setinfo" {
			return fmt.Errorf("redistest: %s refused the user %v the %v %v, %v times: Rules of redistest lack it, or it was for an Admin",
				s.addr, user, reason, object, e["count"])
		}
	}
	return nil
}
