package redistest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// User and Password are the library's on every server. It may do what [Rules]
// say and nothing else, like the default user, which is for programs that know
// nothing but an address.
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
	"+del +get +hdel +hkeys +hlen +hmget +hset +incrby +lindex +llen +lpop +lrange +lrem +ltrim " +
	"+pexpire +pttl +publish +rpush +set +spublish +time " +
	"+zadd +zcard +zcount +zrangebyscore +zrem +zremrangebyscore +zscore"

// LoadedRules are [Rules] for a server that an admin loads the scripts into.
func LoadedRules() string { return strings.Replace(Rules, " +eval +script|load", "", 1) }

// users are the arguments that give a server its users, at each of its starts.
// They outdo a --requirepass.
func users() (args []string) {
	for _, line := range []string{
		adminUser + " on >" + adminPassword + " ~* &* +@all",
		User + " on >" + Password + " " + Rules,
		// Replaying its append-only file Redis is the default user, and drops
		// what that may not do, such as what it has made of a script's PEXPIRE.
		"default on nopass " + Rules + " +pexpireat",
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
	log, err := rdb.ACLLog(ctx, 100).Result()
	if err != nil {
		return fmt.Errorf("redistest: %s: %w", s.addr, err)
	}
	for _, e := range log {
		if (e.Username == User || e.Username == "default") && e.Reason != "auth" && e.Object != "client|setinfo" {
			return fmt.Errorf("redistest: %s refused the user %s the %s %s, %d times: Rules of redistest lack it, or it was for an Admin",
				s.addr, e.Username, e.Reason, e.Object, e.Count)
		}
	}
	return nil
}
