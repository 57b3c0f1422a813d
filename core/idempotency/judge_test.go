package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

var scripts = map[string]*script.Script{
	"begin":    script.FromFS(lua.FS, "guard_begin.lua"),
	"renew":    script.FromFS(lua.FS, "guard_renew.lua"),
	"complete": script.FromFS(lua.FS, "guard_complete.lua"),
	"abandon":  script.FromFS(lua.FS, "guard_abandon.lua"),
	"resolve":  script.FromFS(lua.FS, "guard_resolve.lua"),
	"forget":   script.FromFS(lua.FS, "guard_forget.lua"),
	"inspect":  script.FromFS(lua.FS, "guard_inspect.lua"),
}

var scriptNames = func() map[any]string {
	names := map[any]string{}
	for name, s := range scripts {
		names[s.SHA()] = name
	}
	return names
}()

// place is a server for the records of a model, with a clock that the test can move.
type place struct {
	rdb   redis.UniversalClient
	slack int64 // milliseconds that may pass although the test does not move the clock
	look  func(key string) (record string, lives int64)
	micro func() int64
	// moved lets the given number of milliseconds pass, or sets the clock back if it is
	// negative. o says what becomes of the record.
	moved func(key string, ms int64, o *oracle)
	// live sets the TTL of the record, or removes it.
	live func(key string, ms int64)
}

func onMiniredis(t *testing.T) *place {
	t.Helper()
	m := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { rdb.Close() })
	now := time.Date(2026, 11, 20, 8, 0, 0, 123_456_000, time.UTC)
	m.SetTime(now)
	p := &place{rdb: rdb}
	p.look = func(key string) (string, int64) {
		record, err := m.Get(key)
		if err != nil {
			return "", 0
		}
		if lives := m.TTL(key).Milliseconds(); lives != 0 {
			return record, lives
		}
		return record, immortal
	}
	p.micro = func() int64 { return now.UnixMicro() } //nolint:gocritic // now moves
	p.moved = func(key string, ms int64, o *oracle) {
		now = now.Add(time.Duration(ms) * time.Millisecond)
		m.SetTime(now)
		if o.state == "" {
			m.Del(key)
		} else if o.lives != immortal {
			p.live(key, o.lives)
		}
	}
	p.live = func(key string, ms int64) {
		if ms == immortal {
			rdb.Persist(t.Context(), key)
		} else {
			m.SetTTL(key, time.Duration(ms)*time.Millisecond)
		}
	}
	return p
}

func onServer(t *testing.T) *place {
	t.Helper()
	srv := redistest.Standalone(t)
	admin := srv.Admin(t)
	p := &place{rdb: srv.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true }), slack: 60_000}
	p.look = func(key string) (string, int64) {
		pipe := admin.Pipeline()
		record, lives := pipe.Get(t.Context(), key), pipe.PTTL(t.Context(), key)
		if _, err := pipe.Exec(t.Context()); err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
		if lives.Val() < 0 {
			return record.Val(), int64(lives.Val())
		}
		return record.Val(), lives.Val().Milliseconds()
	}
	p.micro = func() int64 { return admin.Time(t.Context()).Val().UnixMicro() }
	p.moved = func(key string, ms int64, o *oracle) {
		if o.state == "" {
			admin.Del(t.Context(), key)
			return
		}
		if o.running() {
			o.ends -= ms
		}
		admin.Set(t.Context(), key, o.text(), max(time.Duration(o.lives)*time.Millisecond, 0))
	}
	p.live = func(key string, ms int64) {
		if ms == immortal {
			admin.Persist(t.Context(), key)
		} else {
			admin.PExpire(t.Context(), key, time.Duration(ms)*time.Millisecond)
		}
	}
	return p
}

// judge is a client that makes each call of a script twice. It compares the reply and the
// record with the model, both times.
type judge struct {
	*place
	key    string
	model  oracle
	seen   map[string]int
	calls  int
	events []event // the record of this key
	reply  any     // the reply of the last call
	first  any     // the reply of the first call since reset
	told   []string
	fault  error
}

func (j *judge) Process(ctx context.Context, cmd redis.Cmder) error {
	args := redistest.Write(cmd)
	e := event{script: scriptNames[args[1]]}
	for _, arg := range args[4:] {
		e.args = append(e.args, fmt.Sprintf("%s", arg))
	}
	if e.script == "begin" { // its terms are one argument
		e.args = append(e.args[:2], strings.Fields(e.args[2])...)
	}
	if e.script == "" || args[3] != j.key {
		return j.blame("got the call %q, want one of a script on the key %q", args, j.key)
	}
	if e.script != "inspect" && e.script != "forget" {
		j.events = append(j.events, e)
	}
	where := j.model.situation()
	micros := j.micro()
	err := j.rdb.Process(ctx, cmd)
	if err := j.compare(e, j.cell(where, e), micros, cmd.(interface{ Val() any }).Val(), err); err != nil {
		return err
	}
	reply := j.reply
	if j.first == nil {
		j.first = reply
	}
	before := j.model
	again := redis.NewCmd(ctx, args...)
	micros = j.micro()
	err = j.rdb.Process(ctx, again)
	if err := j.compare(e, "", micros, again.Val(), err); err != nil {
		return err
	}
	answered := e.script + fmt.Sprint(" ", reply, " and then ", j.reply)
	before.micros, before.clocked = j.model.micros, j.model.clocked
	switch j.reply = reply; {
	case j.slack == 0 && j.model != before && e.script != "forget":
		return j.blame("%v: made again it changed the record, want no change", e)
	case reflect.DeepEqual(reply, again.Val()), j.slack > 0 && e.script == "begin", e.script == "inspect":
	case answered == "complete 2 and then 1", answered == "forget 1 and then 0", e.name() == "abandon undo" && answered == "abandon 1 and then 0":
	default:
		return j.blame("%v: got the answers %s, want the same twice", e, answered)
	}
	return nil
}

// cell names a field of the table: the state of the record, and what happened.
func (j *judge) cell(where string, e event) string {
	name := where + ": " + e.name()
	switch e.script {
	case "forget", "inspect":
		return name
	case "begin":
		if where != "none" && j.model.print != "-" && j.model.print != e.args[1] && len(e.args) == 5 {
			name += another
		}
	}
	if where != "none" && j.model.owner == e.args[0] {
		name += byOwner
	}
	return name
}

func (j *judge) blame(format string, args ...any) error {
	if j.fault == nil {
		j.fault = fmt.Errorf(format, args...)
	}
	return j.fault
}

func (j *judge) compare(e event, cell string, micros int64, got any, err error) error {
	if j.fault != nil {
		return j.fault
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		return j.blame("%v: got the error %w, want none", e, err)
	}
	j.calls++
	before, lived := j.model, j.model.lives
	j.model.micros, j.model.clocked = micros, false
	want := j.model.apply(e)
	if j.told = append(j.told, fmt.Sprintf("%s\n\t%v: %v", j.model.situation(), e, got)); cell != "" {
		j.seen[cell]++
	}
	record, lives := j.look(j.key)
	slack := int64(0)
	if j.slack > 0 {
		slack = (j.micro() - micros) / 1000
		if slack > j.slack {
			return j.blame("the machine stood still for %d ms, want %d at most", slack, j.slack)
		}
		slack += 2 // because of rounding
	}
	m := &j.model
	switch {
	case m.state == "" && record == "":
	case m.lives < lives || m.lives-lives > slack && (m.lives != lived || m.lives-lives > j.slack):
		return j.blame("%v: the record lives for %d ms, want %d", e, lives, m.lives)
	}
	m.lives = lives
	if record != m.text() && m.state != "" && slack > 0 {
		j.adopt(record, &before, slack)
	}
	if m.state == "" && record != "" || m.state != "" && record != m.text() {
		return j.blame("%v: the record is\n%q, want\n%q, and it was\n%q", e, record, m.text(), before.text())
	}
	j.reply = got
	if want == itself {
		want = record
	}
	if !reflect.DeepEqual(got, want) && (slack == 0 || !near(got, want, j.slack)) {
		return j.blame("%v: got the reply %v, want %v", e, got, want)
	}
	return nil
}

// adopt takes over the times that the server's clock wrote to the record, if that clock
// can have made them.
func (j *judge) adopt(record string, before *oracle, slack int64) {
	var fence, ends, skip int64
	var state string
	line, _, _ := strings.Cut(record, "\n")
	if _, err := fmt.Sscan(line, &state, &fence, &skip, &ends); err != nil {
		return
	}
	m := &j.model
	if m.clocked && ends >= m.ends && ends <= m.ends+slack {
		m.ends = ends
	}
	if m.fence != before.fence && fence >= m.fence && fence <= m.fence+slack*1000 {
		m.fence = fence
	}
}

// near reports whether two replies with times in them may be the same.
func near(got, want any, slack int64) bool {
	a, ok1 := got.(int64)
	b, ok2 := want.(int64)
	if ok1 && ok2 {
		return a == b || a > 1 && b > 1 && a <= b+2 && a >= b-slack
	}
	c, ok1 := got.([]any)
	d, ok2 := want.([]any)
	if !ok1 || !ok2 || len(c) != len(d) {
		return false
	}
	for i := range c {
		if c[i] != d[i] && !near(c[i], d[i], slack) {
			return false
		}
	}
	return true
}
