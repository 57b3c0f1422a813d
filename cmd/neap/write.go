package main

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// writeRemedies are the remedies for a Redis that refuses every write.
var writeRemedies = map[string]string{
	"OOM":         "give Redis more memory, or find what fills it: until then limits are decided by their failure mode, and no caller gets a lock or a claim",
	"READONLY":    "ask the master, by its address or by the sentinels",
	"NOREPLICAS":  "see by INFO replication why fewer replicas are connected than min-replicas-to-write demands",
	"MISCONF":     seeTheLog,
	"CLUSTERDOWN": masterDown,
}

const seeTheLog = "see the log of Redis: the disk may be full, or not writable"

// keyLives is when a key of doctor's own ends, if doctor does not delete it.
const keyLives = 10 * time.Second

// key makes a key of doctor's own.
func (x *exam) key() string { return x.Prefix + ":doctor:{" + rand.Text() + "}" }

// writes tries a write of a key of doctor's own. Redis may refuse all writes while it answers everything else.
func writes(ctx context.Context, x *exam, n node, _ map[string]string) verdict {
	key, err := x.keyOn(ctx, n)
	if err != nil {
		return verdict{detail: "not looked at: " + err.Error()}
	}
	within, cancel := x.within(ctx)
	defer cancel()
	err = n.rdb.Set(within, key, "", keyLives).Err()
	if err == nil {
		err = n.rdb.Del(within, key).Err()
	}
	return judgeWrite(err)
}

// unanswered is the verdict on a command without a reply.
func unanswered(command string, err error) verdict {
	return verdict{broken: true, detail: command + ": " + err.Error(), remedy: "see why Redis stops answering, or use a longer --timeout", away: err}
}

func judgeWrite(err error) verdict {
	switch {
	case err == nil:
		return verdict{detail: "Redis takes writes"}
	case !isReply(err):
		return unanswered("SET", err)
	case lackIn(err.Error()) != nothing: // acl tells more
		return verdict{detail: "not looked at: " + err.Error(), remedy: "see acl"}
	}
	code, _, _ := strings.Cut(err.Error(), " ")
	remedy, is := writeRemedies[code]
	if !is {
		remedy = whenRefused(err)
	}
	return verdict{broken: true, detail: "Redis refuses writes: " + err.Error(), remedy: remedy}
}

// keyOn makes a key of doctor's own whose slot the server serves.
func (x *exam) keyOn(ctx context.Context, n node) (string, error) {
	c, is := x.fleet.client.(*redis.ClusterClient)
	for range 1 << 16 {
		key := x.key()
		if !is {
			return key, nil
		}
		if owner, err := c.MasterForKey(ctx, key); err != nil || owner.Options().Addr == n.addr {
			return key, err
		}
	}
	return "", errors.New("this server serves no slots")
}
