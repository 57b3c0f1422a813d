package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/lua"
)

// need is a right, and the primitives that need it.
type need struct {
	right string
	kinds []string // of primitives
	must  bool     // without it a promise does not hold; otherwise something takes longer
}

// needs are the rights of docs/operations.md. Those of the commands that scripts call are read from the scripts.
func needs(cluster bool) []need {
	all := []need{
		{"evalsha", everyKind, true},
		{"eval", everyKind, false}, // the check eval says whether that breaks anything
		{"script|load", everyKind, false},
		{"ping", everyKind, false},
		{"subscribe", []string{"lock"}, false},
		{"unsubscribe", []string{"lock"}, false},
	}
	if cluster {
		all = append(all, need{"cluster|slots", everyKind, true}, need{"asking", everyKind, true},
			need{"command", everyKind, false}, need{"ssubscribe", []string{"lock"}, false}, need{"sunsubscribe", []string{"lock"}, false})
	}
	for _, command := range slices.Sorted(maps.Keys(called)) {
		if sharded := command == "spublish"; !sharded || cluster {
			all = append(all, need{command, called[command], !strings.HasSuffix(command, "publish")}) // a waiter that is not woken asks again
		}
	}
	return all
}

// families are the primitives of scripts, by what the scripts' names begin with.
var families = map[string]string{
	"limit": "limit", "inflight": "inflight", "lock": "lock", "once": "lock", "guard": "guard", "stock": "stock",
}

var call = regexp.MustCompile(`(?:call|try)\('([A-Z]+)'`)

// called are the primitives whose scripts call a command.
var called = func() map[string][]string {
	all := map[string][]string{}
	add := func(name, text string) {
		family, _, _ := strings.Cut(name, "_")
		for _, m := range call.FindAllStringSubmatch(text, -1) {
			command := strings.ToLower(m[1])
			if kind := families[family]; !slices.Contains(all[command], kind) {
				all[command] = append(all[command], kind)
			}
		}
	}
	for _, name := range scriptNames() {
		text, _ := fs.ReadFile(lua.FS, name)
		add(name, string(text))
	}
	for _, j := range []lua.Joined{lua.Take(true, true, lua.Kinds...), lua.Settle(lua.Kinds...)} {
		add(j.Name, j.Text)
	}
	return all
}()

// form is a call of a command that does no harm. The key is doctor's own, a string that expires by itself. If the user may
// send the call, the server refuses it for another reason, or the call changes no other key. If the key is not there, HSET
// and RPUSH write one without a TTL.
func form(right, key, channel string) []any {
	args, ok := map[string][]any{
		"evalsha": {strings.Repeat("0", 40), "1", key}, "eval": {"return 1", "1", key}, "load": {"return 1"},
		"ping": {}, "slots": {}, "asking": {}, "command": {}, "time": {}, "select": {"0"},
		"subscribe": {channel}, "ssubscribe": {channel}, "unsubscribe": {channel}, "sunsubscribe": {channel}, "publish": {channel, ""}, "spublish": {channel, ""},
		"set": {key, "", "px", keyLives.Milliseconds()}, "hset": {key, "f", "v"}, "hdel": {key, "f"}, "hmget": {key, "f"}, "hscan": {key, "0"},
		"incrby": {key, "none"}, "lindex": {key, "0"}, "lrange": {key, "0", "0"}, "lrem": {key, "0", "v"}, "ltrim": {key, "0", "-1"},
		"rpush": {key, "v"}, "pexpire": {key, keyLives.Milliseconds()}, "pexpireat": {key, "1"},
		"zadd": {key, "nx", "xx", "1", "m"}, "zcount": {key, "0", "1"}, "zrangebyscore": {key, "0", "1"}, "zrem": {key, "m"},
		"zremrangebyscore": {key, "0", "1"}, "zscore": {key, "m"},
	}[right[strings.LastIndex(right, "|")+1:]]
	if !ok {
		args = []any{key} // DEL, GET, HKEYS, HLEN, LLEN, LPOP, PTTL, ZCARD
	}
	var words []any
	for word := range strings.SplitSeq(right, "|") {
		words = append(words, word)
	}
	return append(words, args...)
}

// object is what a user lacks a right to.
type object int

const (
	nothing object = iota
	theCommand
	theKey
	theChannel
	theServer // has no such command
)

// noCommand begins what ACL DRYRUN answers if the server does not have the command.
const noCommand = "ERR Command '"

// lackIn reads from what ACL DRYRUN says, or from an error of the command itself, what the user lacks.
func lackIn(text string) object {
	switch {
	case strings.HasPrefix(text, "ERR unknown command "):
		return theServer
	case !strings.Contains(text, "permissions"):
		return nothing
	case strings.Contains(text, " to run "):
		return theCommand
	case strings.HasSuffix(text, " channel") || strings.Contains(text, "of the channels"):
		return theChannel
	}
	return theKey
}

var errDryRun = errors.New("not looked at: this user may not ask ACL DRYRUN, or the server is older than Redis 7")

// ask says what the user lacks for each of the rights, by ACL DRYRUN.
func (x *exam) ask(ctx context.Context, n node, user string, rights []string) (lacks []object, err error) {
	within, cancel := x.within(ctx)
	defer cancel()
	key, channel := x.key(), x.Prefix+":doctor"
	replies := make([]*redis.Cmd, len(rights))
	_, err = n.rdb.Pipelined(within, func(p redis.Pipeliner) error {
		for i, right := range rights {
			replies[i] = p.Do(within, append([]any{"acl", "dryrun", user}, form(right, key, channel)...)...)
		}
		return nil
	})
	if err != nil && !isReply(err) {
		return nil, err
	}
	lacks = make([]object, len(rights))
	for i, reply := range replies {
		text, err := reply.Text()
		switch {
		case err == nil:
			lacks[i] = lackIn(text)
		case strings.HasPrefix(err.Error(), noCommand): // if the server has no ACL, its error begins otherwise
			lacks[i] = theServer
		case strings.Contains(err.Error(), "User '"), isBusy(err):
			return nil, err
		default:
			return nil, errDryRun
		}
	}
	return lacks, nil
}

// try says the same of the user that doctor is, by the calls themselves.
func (x *exam) try(ctx context.Context, n node, rights []string) (lacks []object, failed string, err error) {
	key, channel := x.key(), x.Prefix+":doctor"
	send := func(right string) error {
		within, cancel := x.within(ctx)
		defer cancel()
		words := form(right, key, channel)
		switch right {
		case "subscribe", "ssubscribe", "unsubscribe", "sunsubscribe":
			subscription := n.rdb.Subscribe(within)
			defer subscription.Close()
			ask := map[string]func(context.Context, ...string) error{
				"subscribe": subscription.Subscribe, "ssubscribe": subscription.SSubscribe,
				"unsubscribe": subscription.Unsubscribe, "sunsubscribe": subscription.SUnsubscribe,
			}[right]
			if err := ask(within, channel); err != nil {
				return err
			}
			_, err := subscription.ReceiveTimeout(within, x.Timeout)
			return err
		case "command":
			words = append(words, "count") // the same right, and a short answer
		}
		return n.rdb.Do(within, words...).Err()
	}
	lacks = make([]object, len(rights))
	order := slices.Clone(rights)
	slices.SortStableFunc(order, func(a, b string) int { return rank(a) - rank(b) })
	safe := false
	for _, right := range order {
		if !safe && (right == "hset" || right == "rpush") {
			continue // it might leave a key without a TTL
		}
		err := send(right)
		if err != nil && !isReply(err) || isBusy(err) {
			return nil, strings.ToUpper(strings.ReplaceAll(right, "|", " ")), err
		}
		if err != nil {
			lacks[slices.Index(rights, right)] = lackIn(err.Error())
			continue
		}
		switch right {
		case "del", "pexpire":
			safe = true
			defer func() { _ = send(right) }()
		case "set":
			safe = true
		}
	}
	return lacks, "", nil
}

// rank puts DEL and PEXPIRE first, so that try knows whether the user may end a key. SET comes next, so that the others
// find a string.
func rank(right string) int {
	return -slices.Index([]string{"set", "pexpire", "del"}, right)
}

// rights compares what a user may do with what neap needs.
func rights(ctx context.Context, x *exam, n node, info map[string]string) verdict {
	wanted := slices.DeleteFunc(needs(info["cluster_enabled"] == "1" || x.isCluster()), func(want need) bool {
		return !slices.ContainsFunc(want.kinds, func(kind string) bool { return slices.Contains(x.For, kind) })
	})
	names := make([]string, len(wanted))
	for i, want := range wanted {
		names[i] = want.right
	}
	user := x.ForUser
	if user == "" {
		var err error
		if user, err = x.whoami(ctx, n); err != nil {
			return unanswered("ACL WHOAMI", err)
		}
	}
	command := "ACL DRYRUN"
	lacks, err := x.ask(ctx, n, user, names)
	if errors.Is(err, errDryRun) && x.ForUser == "" {
		lacks, command, err = x.try(ctx, n, names)
	}
	if err != nil && strings.Contains(err.Error(), "User '") {
		return verdict{broken: true, detail: "there is no user " + user, remedy: "ACL SETUSER, with the line of docs/operations.md, Least privilege"}
	}
	if errors.Is(err, errDryRun) {
		return verdict{detail: err.Error(), remedy: "run doctor as the user of the service, or as a user with the right acl|dryrun"}
	}
	if err != nil {
		return x.failed(ctx, n, command, err)
	}
	return judge(x, user, wanted, lacks)
}

// judge says what it means that a user lacks rights.
func judge(x *exam, user string, wanted []need, lacks []object) (v verdict) {
	var must, may, absent, rules []string
	add := func(to *[]string, what, rule string) {
		if !slices.Contains(*to, what) {
			*to = append(*to, what)
			rules = append(rules, rule)
		}
	}
	for i, want := range wanted {
		to := &may
		if want.must {
			to = &must
		}
		what := want.right
		if len(want.kinds) < len(everyKind) {
			what += " (" + strings.Join(want.kinds, ", ") + ")"
		}
		switch lacks[i] {
		case theServer:
			absent = append(absent, what)
			v.broken = v.broken || want.must
		case theCommand:
			add(to, what, "+"+want.right)
		case theKey:
			add(&must, "keys "+x.Prefix+":*", "~"+x.Prefix+":*")
		case theChannel:
			add(&may, "channels "+x.Prefix+":*", "&"+x.Prefix+":*")
		}
	}
	var details, remedies []string
	if len(must)+len(may) > 0 {
		v.broken = v.broken || len(must) > 0
		details = append(details, "the user "+user+" lacks "+strings.Join(append(must, may...), ", "))
		remedies = append(remedies, "ACL SETUSER "+user+" "+strings.Join(rules, " "))
	}
	if len(absent) > 0 {
		details = append(details, "the server has no command "+strings.Join(absent, ", "))
		remedies = append(remedies, "take its rename-command out of redis.conf, or use a server that has it")
	}
	v.detail, v.remedy = strings.Join(details, ", and "), strings.Join(remedies, "; ")
	switch {
	case len(details) == 0:
		v.detail = "the user " + user + " may do all that neap does"
		if slices.ContainsFunc(everyKind, func(kind string) bool { return !slices.Contains(x.For, kind) }) {
			v.detail += " for " + strings.Join(x.For, ", ")
		}
	case !v.broken:
		v.detail += ": neap works without, and more slowly"
	}
	if len(details) == 0 && user == "default" {
		v.remedy = "give neap a user of its own, with only the rights that it needs (docs/operations.md, Least privilege)"
	}
	return v
}

// lacks are the rights that a user lacks. There are none if this user may not ask.
func (x *exam) lacks(ctx context.Context, n node, user string, rights []string) (lacking []string) {
	lacks, _ := x.ask(ctx, n, user, rights)
	for i, what := range lacks {
		if what != nothing && what != theServer {
			lacking = append(lacking, rights[i])
		}
	}
	return lacking
}

// mayNot says whether a user lacks the right to a command. The error is that there was no reply.
func (x *exam) mayNot(ctx context.Context, n node, user, right string) (lacks bool, err error) {
	all, err := x.ask(ctx, n, user, []string{right})
	if isReply(err) || errors.Is(err, errDryRun) { // acl tells it
		err = nil
	}
	return slices.Contains(all, theCommand), err
}

// replayed are the commands of scripts that stand in an append-only file.
var replayed = []string{
	"del", "hdel", "hset", "incrby", "lpop", "lrem", "ltrim", "pexpireat", "rpush", "select", "set", "zadd", "zrem", "zremrangebyscore",
}

// whoami is the user that doctor is. The error is that there was no reply.
func (x *exam) whoami(ctx context.Context, n node) (user string, err error) {
	within, cancel := x.within(ctx)
	defer cancel()
	user, err = n.rdb.Do(within, "acl", "whoami").Text()
	if isReply(err) { // the server has no ACL, or this user may not ask
		user, err = cmp.Or(n.rdb.Options().Username, "default"), nil
	}
	return user, err
}

func (x *exam) isCluster() bool {
	_, is := x.fleet.client.(*redis.ClusterClient)
	return is
}
