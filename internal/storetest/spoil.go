package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// junk is what no number of a record is, or none that a script has written.
var junk = []string{
	"", "abc", "-1", "1.5", "nan", "inf", "-inf", "1e2", "10e2", "0xFFFFF", "99999999999999999999", "9007199254740993", "1:2:3:4:5", "-1:-1:-1:-1:-1",
	"0:0:0:0:0", "5 ", "\x00", "pending 1 2 3 4 5", "done 1 1 - r\n", "99999999999999999999:1", "1:nan", strings.Repeat("9", 300),
}

// Spoil breaks the records of a primitive in many ways, in `make full` in every way, and
// fails the test if a call then seems to be in doubt: a broken record is no outage. makes
// writes records, whose keys begin with the prefix, and returns calls that read them. The
// server should be the test's own: Spoil uses KEYS.
func Spoil(t *testing.T, admin redis.UniversalClient, prefix string, makes func() (calls []func() error)) {
	t.Helper()
	ctx := t.Context()
	anew := func() (keys []string, calls []func() error) {
		t.Helper()
		if old := admin.Keys(ctx, prefix+"*").Val(); len(old) > 0 {
			admin.Del(ctx, old...)
		}
		calls = makes()
		keys = admin.Keys(ctx, prefix+"*").Val()
		slices.Sort(keys)
		return keys, calls
	}
	keys, calls := anew()
	if len(keys) == 0 {
		t.Fatal("got no records, want some")
	}
	type attempt struct {
		record int
		how    string
		spoil  func(key string) error
		call   int
	}
	var all []attempt
	for k, key := range keys {
		ways := spoils(t, admin, key)
		for _, how := range slices.Sorted(maps.Keys(ways)) {
			for i := range calls {
				all = append(all, attempt{k, how, ways[how], i})
			}
		}
	}
	redistest.Rand(t).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	spoiled, left := make([]bool, len(keys)), redistest.Steps(10_000)
	for _, a := range all {
		if left == 0 {
			break
		}
		keys, calls := anew()
		if a.record >= len(keys) {
			t.Fatalf("got the records %q, want %d", keys, a.record+1)
		}
		if a.spoil(keys[a.record]) != nil {
			continue // Redis refuses it, such as a score that is no number
		}
		spoiled[a.record] = true
		left--
		if err := calls[a.call](); errors.Is(err, script.ErrMaybeExecuted) || errors.Is(err, script.ErrNotExecuted) {
			t.Errorf("call %d, %s of record %d: got %v, want an answer or %v", a.call, a.how, a.record, err, script.ErrFailed)
		}
	}
	if slices.Contains(spoiled, false) {
		t.Errorf("got records of %q that nothing broke: %v", keys, spoiled)
	}
}

// spoils are the ways to break a record like that of the key.
func spoils(t *testing.T, admin redis.UniversalClient, key string) map[string]func(key string) error {
	t.Helper()
	ctx := t.Context()
	all := map[string]func(key string) error{
		"no end":     func(key string) error { return admin.Persist(ctx, key).Err() },
		"a late end": func(key string) error { return admin.PExpire(ctx, key, 1e6*time.Hour).Err() },
		"a list": func(key string) error {
			return errors.Join(admin.Del(ctx, key).Err(), admin.RPush(ctx, key, "1").Err())
		},
		"a string": func(key string) error { return admin.Set(ctx, key, "1", time.Hour).Err() },
	}
	kind := admin.Type(ctx, key).Val()
	for _, word := range junk {
		name := fmt.Sprintf("%.12q", word)
		switch kind {
		case "string":
			all[name] = func(key string) error { return admin.SetArgs(ctx, key, word, redis.SetArgs{KeepTTL: true}).Err() }
		case "hash":
			for _, field := range admin.HKeys(ctx, key).Val() {
				all[name+" in "+field] = func(key string) error { return admin.HSet(ctx, key, field, word).Err() }
			}
		case "list":
			all[name+" at the head"] = func(key string) error { return admin.LSet(ctx, key, 0, word).Err() }
			all[name+" at the end"] = func(key string) error { return admin.LSet(ctx, key, -1, word).Err() }
			all[name+" behind it"] = func(key string) error { return admin.RPush(ctx, key, word).Err() }
		case "zset":
			all[name+" as a score"] = func(key string) error { return admin.Do(ctx, "ZADD", key, word, "m").Err() }
			all[name+" as a member"] = func(key string) error { return admin.ZAdd(ctx, key, redis.Z{Score: 1, Member: word}).Err() }
		default:
			t.Fatalf("the record %q: got a %s", key, kind)
		}
	}
	return all
}
