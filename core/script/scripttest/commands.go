package scripttest

import (
	"slices"
	"strconv"
	"strings"
)

// words splits a table that is written as one text.
func words(text string) []string { return strings.Fields(text) }

var (
	// keyless commands touch no key that a script could declare.
	keyless = words(`ACL AUTH CLIENT CLUSTER COMMAND CONFIG DBSIZE ECHO FLUSHALL FLUSHDB FUNCTION INFO KEYS LASTSAVE LATENCY
		LOLWUT MODULE PING PUBLISH PUBSUB RANDOMKEY READONLY READWRITE ROLE SCAN SCRIPT SELECT SLOWLOG SPUBLISH SWAPDB
		TIME WAIT`)
	// everyKey commands have only keys as arguments.
	everyKey = words(`DEL EXISTS MGET PFCOUNT PFMERGE SDIFF SDIFFSTORE SINTER SINTERSTORE SUNION SUNIONSTORE TOUCH UNLINK`)
	// twoKeys commands begin with two keys.
	twoKeys = words(`BLMOVE BRPOPLPUSH COPY GEOSEARCHSTORE LCS LMOVE RENAME RENAMENX RPOPLPUSH SMOVE ZRANGESTORE`)
	// subKey commands have a subcommand, and a key after it.
	subKey = words(`MEMORY OBJECT XGROUP XINFO`)
	// counted commands have the number of their keys as an argument; the value is its
	// index.
	counted = map[string]int{
		"BLMPOP": 2, "BZMPOP": 2, "LMPOP": 1, "SINTERCARD": 1, "ZDIFF": 1, "ZDIFFSTORE": 2, "ZINTER": 1, "ZINTERCARD": 1,
		"ZINTERSTORE": 2, "ZMPOP": 1, "ZUNION": 1, "ZUNIONSTORE": 2,
	}
	// writes are the commands that change what is stored.
	writes = words(`APPEND BITFIELD BITOP BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN COPY DECR DECRBY DEL
		EXPIRE EXPIREAT FLUSHALL FLUSHDB GEOADD GEORADIUS GEORADIUSBYMEMBER GEOSEARCHSTORE GETDEL GETEX GETSET HDEL HEXPIRE
		HEXPIREAT HGETDEL HGETEX HINCRBY HINCRBYFLOAT HMSET HPERSIST HPEXPIRE HPEXPIREAT HSET HSETEX HSETNX INCR INCRBY INCRBYFLOAT LINSERT LMOVE LMPOP LPOP LPUSH LPUSHX LREM LSET
		LTRIM MIGRATE MOVE MSET MSETNX PERSIST PEXPIRE PEXPIREAT PFADD PFMERGE PSETEX RENAME RENAMENX RESTORE RPOP
		RPOPLPUSH RPUSH RPUSHX SADD SDIFFSTORE SET SETBIT SETEX SETNX SETRANGE SINTERSTORE SMOVE SORT SPOP SREM
		SUNIONSTORE SWAPDB UNLINK XACK XADD XAUTOCLAIM XCLAIM XDEL XGROUP XREADGROUP XSETID XTRIM ZADD ZDIFFSTORE
		ZINCRBY ZINTERSTORE ZMPOP ZPOPMAX ZPOPMIN ZRANGESTORE ZREM ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE
		ZUNIONSTORE`)
	// heard are the commands whose effect is that subscribers are told something.
	heard = words(`PUBLISH SPUBLISH`)
	// wholesale commands work on keys that their arguments do not name.
	wholesale = words(`DBSIZE FLUSHALL FLUSHDB KEYS RANDOMKEY SCAN SWAPDB`)
)

// effect reports whether a command belongs among the effects of a script.
func effect(command string) bool {
	return slices.Contains(writes, command) || slices.Contains(heard, command)
}

// keysOf returns the keys of a command as it was passed. An unknown command is taken to
// have its key first, as most commands do.
func keysOf(args []string) (keys []string) {
	command := strings.ToUpper(args[0])
	from := func(first, last, step int) {
		for i := first; i <= last && i < len(args); i += step {
			keys = append(keys, args[i])
		}
	}
	last := len(args) - 1
	switch place := counted[command]; {
	case slices.Contains(keyless, command):
	case slices.Contains(everyKey, command):
		from(1, last, 1)
	case command == "MSET" || command == "MSETNX":
		from(1, last, 2)
	case slices.Contains(twoKeys, command):
		from(1, 2, 1)
	case slices.Contains(subKey, command):
		from(2, 2, 1)
	case command == "BITOP":
		from(2, last, 1)
	case command == "BLPOP" || command == "BRPOP" || command == "BZPOPMIN" || command == "BZPOPMAX":
		from(1, last-1, 1)
	case command == "XREAD" || command == "XREADGROUP":
		if i := slices.IndexFunc(args, func(a string) bool { return strings.EqualFold(a, "STREAMS") }); i > 0 {
			from(i+1, i+(last-i)/2, 1)
		}
	case place > 0 && place < len(args):
		from(1, place-1, 1)
		if command == "BLMPOP" || command == "BZMPOP" {
			keys = nil // the first argument is how long it would block
		}
		count, _ := strconv.Atoi(args[place])
		from(place+1, place+count, 1)
	default:
		from(1, 1, 1)
		for i, a := range args {
			if stores := command == "SORT" || strings.HasPrefix(command, "GEORADIUS"); stores && i > 1 &&
				(strings.EqualFold(a, "STORE") || strings.EqualFold(a, "STOREDIST")) {
				from(i+1, i+1, 1)
			}
		}
	}
	return keys
}

// written returns the keys of a command that it may change. For a command that stores a
// result, these are the keys of the result, not those of the source.
func written(args []string) []string {
	keys := keysOf(args)
	switch command := strings.ToUpper(args[0]); {
	case !slices.Contains(writes, command) || len(keys) == 0:
		return nil
	case command == "COPY" || command == "SORT" || strings.HasPrefix(command, "GEORADIUS"):
		return keys[1:]
	case strings.HasSuffix(command, "STORE") || command == "BITOP" || command == "PFMERGE":
		return keys[:1]
	}
	return keys
}
