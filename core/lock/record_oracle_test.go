package lock_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

var (
	acquireScript = script.FromFS(lua.FS, "lock_acquire.lua")
	extendScript  = script.FromFS(lua.FS, "lock_extend.lua")
	releaseScript = script.FromFS(lua.FS, "lock_release.lua")
	forceScript   = script.FromFS(lua.FS, "lock_force.lua")
	leaveScript   = script.FromFS(lua.FS, "lock_leave.lua")
	inspectScript = script.FromFS(lua.FS, "lock_inspect.lua")
)

// immortal is the PTTL of a key without a TTL.
const immortal = -1

// record is the model of the scripts for locks. Its times are in milliseconds.
type record struct {
	there       bool
	fence       int64
	owner, wake string // wake without the line
	line        []place
	ttl, keep   int64 // 0 if the lock is free or was forced open
	holds       map[string]bool
	lives       int64
}

// place is that of a process in the line, and until when it has it. Of the first in line of
// a free lock, it is since when the lock waits for it.
type place struct {
	process string
	time    int64
}

// caller is how a caller of acquire wants to be told, and what it asks for in the line.
type caller struct {
	wake, process string
	stays, waits  int64
}

// note puts the caller's process in line, as far as it may be.
func (r *record) note(c caller, now int64, named bool) {
	switch {
	case c.wake == "", c.process != "" && r.wake != "" && len(r.line) == 0:
		return
	case c.process == "":
		r.wake, r.line = c.wake, nil
		return
	}
	var line []place
	mine := false
	for i, p := range r.line {
		if p.process == c.process {
			if mine = true; 2*(p.time-now) < c.stays || p.time-now > c.stays {
				p.time = now + c.stays
			}
		}
		if p.time > now || named && i == 0 {
			line = append(line, p)
		}
	}
	if !mine {
		line = append(line, place{c.process, now + c.stays})
	}
	r.wake, r.line = c.wake, line
}

// remove takes a process out of the line. It returns which place it had, or -1.
func (r *record) remove(process string) (i int) {
	if i = slices.IndexFunc(r.line, func(p place) bool { return p.process == process }); i >= 0 {
		if r.line = slices.Delete(r.line, i, i+1); len(r.line) == 0 {
			r.wake = ""
		}
	}
	return i
}

func (r *record) leave(process string, now int64) int64 {
	i := r.remove(process)
	if i == 0 && r.owner == "" && len(r.line) > 0 { // the lock waited for it
		r.line[0].time = now
	}
	return int64(min(i+1, 1))
}

// left returns for how long the lock is still held, as the scripts see it.
func (r *record) left() (left int64, mend bool) {
	left = r.lives - r.keep
	if r.ttl == 0 || r.lives != immortal && left <= r.ttl {
		return left, false
	}
	return r.ttl, true
}

func (r *record) acquire(owner, hold string, ttl, keep int64, c caller, now int64) (left int64, granted bool) {
	left, mend := r.left()
	if mend {
		r.lives = left + r.keep
	}
	held := r.ttl != 0 && left > 0
	if held && (r.owner != owner || (owner == hold) != r.holds[owner]) {
		r.note(c, now, false)
		return left, false
	}
	named := !held && r.owner == "" && len(r.line) > 0 && r.line[0].process != c.process
	if named {
		if since := now - r.line[0].time; since >= 0 && since < c.waits {
			r.note(c, now, true)
			return c.waits - since, false
		}
		r.line = nil
	} else if c.process != "" && !held {
		r.remove(c.process)
	}
	if !held {
		left, r.ttl, r.holds = 0, 0, map[string]bool{}
	}
	r.there, r.owner, r.ttl, r.keep = true, owner, max(r.ttl, ttl), keep
	r.holds[hold] = true
	r.lives = max(left, ttl) + keep
	return 0, true
}

func (r *record) absent(mine int64) int64 {
	if r.fence > mine {
		return -1
	}
	return -2
}

func (r *record) extend(hold string, mine, ttl int64) int64 {
	if !r.holds[hold] {
		return r.absent(mine)
	}
	left, mend := r.left()
	if left <= 0 {
		return 0
	}
	r.ttl = max(r.ttl, ttl)
	if ttl > left || mend {
		left = max(left, ttl)
		r.lives = left + r.keep
	}
	return left
}

func (r *record) release(hold string, mine, now int64) int64 {
	switch {
	case !r.there:
		return -2
	case !r.holds[hold] && (r.fence > mine || r.owner != "" && r.ttl == 0):
		return r.absent(mine)
	case !r.holds[hold]:
		return -3
	}
	lapsed := r.lives != immortal && r.lives <= r.keep
	delete(r.holds, hold)
	if len(r.holds) == 0 {
		if r.lives == immortal {
			r.lives = r.keep
		}
		line := slices.DeleteFunc(slices.Clone(r.line), func(p place) bool { return p.time <= now })
		wake := r.wake
		r.free()
		r.owner = ""
		if len(line) > 0 {
			line[0].time = now
			r.wake, r.line = wake, line
		}
	}
	if lapsed {
		return 0
	}
	return 1
}

// pass is a release with a successor. granted reports that the successor has the lock,
// and again that it had the lock before.
func (r *record) pass(hold string, mine int64, successor string, ttl, keep, now int64) (n int64, granted, again bool) {
	switch {
	case !r.holds[hold] && r.fence > mine && r.owner == successor && r.ttl != 0 && r.lives > r.keep:
		r.lives = max(r.lives, ttl+keep)
		return 0, true, true
	case !r.holds[hold] || r.owner != hold || r.wake != "" || r.lives != immortal && r.lives <= r.keep:
		return r.release(hold, mine, now), false, false
	}
	r.owner, r.holds, r.ttl, r.keep, r.lives = successor, map[string]bool{successor: true}, ttl, keep, ttl+keep
	return 0, true, false
}

func (r *record) force() int64 {
	if r.ttl == 0 {
		return 0
	}
	held := r.lives == immortal || r.lives > r.keep
	r.lives = r.keep
	r.free()
	if held {
		return 1
	}
	return 0
}

func (r *record) free() {
	r.ttl, r.keep, r.wake, r.line = 0, 0, "", nil
	clear(r.holds)
}

func (r *record) inspect() []any {
	left, _ := r.left()
	if r.ttl == 0 || left <= 0 {
		return []any{r.fence, int64(0), int64(0), ""}
	}
	return []any{r.fence, left, int64(len(r.holds)), r.owner}
}

// fields returns the fields of the record in Redis, without the line.
func (r *record) fields() map[string]string {
	all := map[string]string{}
	for field, value := range map[string]string{"fence": strconv.FormatInt(r.fence, 10), "owner": r.owner, "wake": r.wake} {
		if r.there && value != "" {
			all[field] = value
		}
	}
	if r.ttl != 0 {
		all["ttl"], all["keep"] = strconv.FormatInt(r.ttl, 10), strconv.FormatInt(r.keep, 10)
	}
	for hold := range r.holds {
		all["hold:"+hold] = ""
	}
	return all
}

// oracle runs one random history on Redis and on the model. A unit is much longer than a
// history takes, so time stands still even on a real server. The test lets time pass by
// changing the TTL of the record.
type oracle struct {
	rng        *rand.Rand
	rdb, admin redis.UniversalClient
	run        *script.Runner
	key        string
	unit       int64
	slack      int64
	model      record
	granted    map[string]int64 // the fence, by hold
	now        func() int64
	seen       map[string]int
	history    []string
}

func (o *oracle) call(t *testing.T, sc *script.Script, args ...any) any {
	t.Helper()
	reply, err := o.run.Run(t.Context(), sc, []string{o.key}, args...)
	if err != nil {
		t.Fatalf("%s: got %v, want an answer\nafter %s", sc.Name(), err, strings.Join(o.history, "\n"))
	}
	return reply
}

func (o *oracle) note(format string, args ...any) {
	o.history = append(o.history, fmt.Sprintf(format, args...))
}

// near reports whether two numbers of milliseconds may be the same. Redis' clock may be a
// little behind: a script has the time at which its turn of the event loop began.
func (o *oracle) near(got, want int64) bool { return max(got-want, want-got) <= o.slack }

func (o *oracle) step(t *testing.T) {
	t.Helper()
	owner := fmt.Sprint("owner", o.rng.IntN(3))
	hold := fmt.Sprint(owner, "-", o.rng.IntN(3))
	if o.rng.IntN(3) == 0 {
		hold = owner // a hold without a named owner
	}
	ttl, keep := (1+o.rng.Int64N(5))*o.unit, (20+o.rng.Int64N(2))*o.unit
	now := o.now() // before Redis reads its clock
	switch o.rng.IntN(14) {
	case 0, 1, 2, 3:
		o.acquire(t, owner, hold, ttl, keep, now)
	case 4, 5:
		n := o.call(t, extendScript, hold, o.granted[hold], ttl).(int64)
		want := o.model.extend(hold, o.granted[hold], ttl)
		o.note("extend %s %d %d: %d", hold, o.granted[hold], ttl, n)
		o.answered(t, n, want)
	case 6, 7, 8:
		if len(o.model.holds) == 1 && o.rng.IntN(2) == 0 { // otherwise few releases would end the lock
			for hold = range o.model.holds {
				owner = o.model.owner
			}
		}
		mine := o.granted[hold]
		if o.rng.IntN(5) == 0 {
			mine = 0
		}
		if successor := fmt.Sprint("owner", o.rng.IntN(3)); successor != owner && o.rng.IntN(2) == 0 {
			o.pass(t, hold, mine, successor, ttl, keep, now)
			break
		}
		n := o.call(t, releaseScript, hold, mine).(int64)
		want := o.model.release(hold, mine, now)
		o.note("release %s %d: %d", hold, mine, n)
		o.answered(t, n, want)
	case 9:
		if o.rng.IntN(2) == 0 {
			process := []string{"A1", "B2", "C3", "D4"}[o.rng.IntN(4)]
			n := o.call(t, leaveScript, process).(int64)
			o.note("leave %s: %d", process, n)
			if want := o.model.leave(process, o.now()); n != want {
				t.Fatalf("leave: got %d, want %d\nafter %s", n, want, strings.Join(o.history, "\n"))
			}
			break
		}
		n := o.call(t, forceScript).(int64)
		o.note("force: %d", n)
		o.answered(t, n, o.model.force())
	case 10:
		got, want := o.call(t, inspectScript).([]any), o.model.inspect()
		o.note("inspect: %v", got)
		if got[0] != want[0] || !o.near(got[1].(int64), want[1].(int64)) || got[2] != want[2] || got[3] != want[3] {
			t.Fatalf("inspect: got %v, want %v\nafter %s", got, want, strings.Join(o.history, "\n"))
		}
	default:
		o.harm(t)
	}
}

// acquire asks for a hold, as a process that stands in line or does not.
func (o *oracle) acquire(t *testing.T, owner, hold string, ttl, keep, now int64) {
	t.Helper()
	c := caller{
		wake: []string{"", "PUBLISH", "SPUBLISH"}[o.rng.IntN(3)], process: []string{"", "A1", "B2", "C3", "D4"}[o.rng.IntN(5)],
		stays: (3 + 2*o.rng.Int64N(2)) * o.unit, waits: 2 * o.unit,
	}
	args := []any{owner, hold, ttl, keep, c.wake}
	if c.process == "" {
		c.waits = 0
	} else {
		args = append(args, fmt.Sprintf("%s %d %d", c.process, c.stays, c.waits))
	}
	before := o.model.fence
	wasHeld, waited, line := o.model.ttl != 0, o.model.ttl == 0 && o.model.owner == "", len(o.model.line)
	n := o.call(t, acquireScript, args...).(int64)
	same := o.model.inspect()[2] != int64(0)
	left, granted := o.model.acquire(owner, hold, ttl, keep, c, now)
	o.note("acquire %s %d %d %+v: %d", hold, ttl, keep, c, n)
	if waited && line > 0 {
		o.seen[fmt.Sprintf("the first was named, granted %v, line left %v", granted, len(o.model.line) > 0)]++
	}
	switch {
	case granted && same && n == before: // the same call once more
		o.seen["re-entered"]++
	case granted && !same && n > before:
		o.model.fence = n
		if wasHeld {
			o.seen["taken after a lapse"]++
		}
	case !granted && max(-n-left, n+left) <= o.slack: // the clock of Redis is read twice
		o.seen["denied"]++
		if o.model.owner == owner {
			o.seen["denied its own"]++
		}
	default:
		t.Fatalf("acquire: got %d, want granted %v, or else %d left; the fence was %d\nafter %s",
			n, granted, left, before, strings.Join(o.history, "\n"))
	}
	if granted {
		o.granted[hold] = n
	}
}

// pass releases a hold to a successor.
func (o *oracle) pass(t *testing.T, hold string, mine int64, successor string, ttl, keep, now int64) {
	t.Helper()
	n := o.call(t, releaseScript, hold, mine, successor, ttl, keep).(int64)
	before := o.model.fence
	want, granted, again := o.model.pass(hold, mine, successor, ttl, keep, now)
	o.note("release %s %d to %s: %d", hold, mine, successor, n)
	switch {
	case granted && again && n == before:
		o.seen["passed again"]++
	case granted && !again && n > before:
		o.seen["passed"]++
		o.model.fence = n
	case granted:
		t.Fatalf("a release to a successor: got %d, want more than %d, or that if granted before (%v)\nafter %s",
			n, before, again, strings.Join(o.history, "\n"))
	default:
		o.answered(t, n, want)
	}
	if granted {
		o.granted[successor] = n
	}
}

func (o *oracle) answered(t *testing.T, n, want int64) {
	t.Helper()
	if n != want && (n <= 1 || !o.near(n, want)) {
		t.Fatalf("got %d, want %d\nafter %s", n, want, strings.Join(o.history, "\n"))
	}
	o.seen[fmt.Sprint("answer ", min(want, 2))]++
}

// harm lets time pass, sets the clock forward or back, or removes the TTL of the record.
func (o *oracle) harm(t *testing.T) {
	t.Helper()
	m := &o.model
	if !m.there {
		return
	}
	if len(m.line) > 0 && o.rng.IntN(2) == 0 {
		passed := (o.rng.Int64N(6) - 1) * o.unit // below 0, the clock was set back
		wake := m.wake
		for i := range m.line {
			m.line[i].time -= passed
			wake += fmt.Sprintf(" %s %d", m.line[i].process, m.line[i].time)
		}
		o.admin.HSet(t.Context(), o.key, "wake", wake)
		o.note("%d pass in the line, which is %q", passed, wake)
		return
	}
	keep := m.keep
	if keep == 0 {
		keep = 20 * o.unit
	}
	lives := int64(immortal)
	switch o.rng.IntN(8) {
	case 0:
	case 1, 2, 3: // close to the end of the lease
		lives = keep + (o.rng.Int64N(3)-1)*max(1, o.slack*2)
		if lives == keep && o.slack > 0 {
			lives--
		}
	case 4: // close to the longest possible life of the lock
		lives = keep + m.ttl + (o.rng.Int64N(3)-1)*max(1, o.slack*2)
	case 5:
		lives = keep + 1000*o.unit
	case 6:
		lives = keep - o.rng.Int64N(keep/2)
	case 7:
		if o.rng.IntN(4) == 0 {
			o.admin.Del(t.Context(), o.key)
			*m = record{holds: map[string]bool{}}
			o.note("DEL")
			return
		}
		lives = keep + o.rng.Int64N(5*o.unit)
	}
	m.lives = lives
	if lives == immortal {
		o.admin.Persist(t.Context(), o.key)
	} else {
		o.admin.PExpire(t.Context(), o.key, time.Duration(lives)*time.Millisecond)
	}
	o.note("lives %d, with keep %d", lives, keep)
}

func (o *oracle) compare(t *testing.T) {
	t.Helper()
	got, err := o.admin.HGetAll(t.Context(), o.key).Result()
	if err != nil {
		t.Fatal(err)
	}
	wake := strings.Fields(got["wake"])
	var line []place
	for i := 1; i+1 < len(wake); i += 2 {
		time, err := strconv.ParseInt(wake[i+1], 10, 64)
		if err != nil {
			t.Fatalf("got the line %q, want numbers of milliseconds\nafter %s", got["wake"], strings.Join(o.history, "\n"))
		}
		line = append(line, place{wake[i], time})
		got["wake"] = wake[0]
	}
	if !slices.EqualFunc(line, o.model.line, func(got, want place) bool { return got.process == want.process && o.near(want.time, got.time) }) {
		t.Fatalf("got the line %v\nwant %v\nafter %s", line, o.model.line, strings.Join(o.history, "\n"))
	}
	if want := o.model.fields(); !maps.Equal(got, want) {
		t.Fatalf("got the record %v\nwant %v\nafter %s", got, want, strings.Join(o.history, "\n"))
	}
	if !o.model.there {
		return
	}
	lives := int64(o.admin.PTTL(t.Context(), o.key).Val())
	if lives > 0 {
		lives /= int64(time.Millisecond)
	}
	if !o.near(lives, o.model.lives) {
		t.Fatalf("the record lives for %d, want %d\nafter %s", lives, o.model.lives, strings.Join(o.history, "\n"))
	}
}

// TestRecordEqualsModel runs the scripts on a record, and the model beside it. Holds are
// unknown to the record, leases lapse, clocks are set, records lose their TTL, and the
// server's clock was ahead.
func TestRecordEqualsModel(t *testing.T) { //nolint:tparallel // what they have met is counted when all have ended
	t.Parallel()
	var met redistest.Coverage
	t.Run("on", func(t *testing.T) {
		for _, target := range []redistest.Target{redistest.OnMiniredis, redistest.OnStandalone} {
			t.Run(string(target), func(t *testing.T) {
				t.Parallel()
				met.Add(recordStories(t, target))
			})
		}
	})
	met.Want(t, redistest.Steps(100_000)/2000, // where there are so many steps
		"re-entered", "taken after a lapse", "denied", "denied its own", "passed", "passed again",
		"the first was named, granted true, line left true", "the first was named, granted true, line left false",
		"the first was named, granted false, line left true",
		"answer -3", "answer -2", "answer -1", "answer 0", "answer 1", "answer 2")
}

// recordStories compares histories of a hundred steps, and returns what happened in them.
func recordStories(t *testing.T, target redistest.Target) (seen map[string]int) {
	t.Helper()
	var rdb, admin redis.UniversalClient
	unit, slack := int64(100), int64(0)
	now := func() int64 { return time.Now().UnixMilli() }
	prefix := redistest.Prefix(t)
	if target == redistest.OnMiniredis { // without ClockTTL, time stands still
		m := miniredis.RunT(t)
		still := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
		m.SetTime(still)
		now = still.UnixMilli
		rdb = redis.NewClient(&redis.Options{Addr: m.Addr(), ContextTimeoutEnabled: true})
		t.Cleanup(func() { rdb.Close() })
		admin = rdb
	} else {
		srv := redistest.Standalone(t)
		rdb = srv.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
		admin = srv.Admin(t)
		unit, slack = 3_600_000, 300_000
	}
	run, err := script.NewRunner(rdb, &script.Options{Budget: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	rng := redistest.Rand(t)
	seen = map[string]int{}
	const steps = 100
	for i := range max(redistest.Steps(100_000)/steps, 1) {
		o := &oracle{
			rng: rng, rdb: rdb, admin: admin, run: run, key: fmt.Sprintf("%s:{%d}", prefix, i), unit: unit, slack: slack,
			model: record{holds: map[string]bool{}}, granted: map[string]int64{}, now: now, seen: seen,
		}
		if rng.IntN(2) == 0 { // the clock was ahead
			o.model.there, o.model.fence, o.model.lives = true, 4e15, unit*30
			admin.HSet(t.Context(), o.key, "fence", o.model.fence)
			admin.PExpire(t.Context(), o.key, time.Duration(o.model.lives)*time.Millisecond)
		}
		for range steps {
			o.step(t)
			o.compare(t)
		}
		admin.Del(t.Context(), o.key)
	}
	return seen
}

// TestForeignRecordsAreRefused: a key that something else wrote is not taken for a lock,
// and does not change.
func TestForeignRecordsAreRefused(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		ctx := t.Context()
		l := locker(t, rdb, prefix, nil)
		key := prefix + ":lock:test:{key}"
		hash := func(fields ...any) func() error {
			return func() error { return admin.HSet(ctx, key, fields...).Err() }
		}
		for name, make := range map[string]func() error{
			"a string":         func() error { return admin.Set(ctx, key, "token", time.Hour).Err() },
			"a set":            func() error { return admin.SAdd(ctx, key, "token").Err() },
			"a fence of words": hash("fence", "words"),
			"a ttl of words":   hash("fence", "1", "owner", "o", "ttl", "words", "keep", "1"),
			"a keep of words":  hash("fence", "1", "owner", "o", "ttl", "1", "keep", "words"),
			"no keep":          hash("fence", "1", "owner", "o", "ttl", "1"),
		} {
			if err := make(); err != nil {
				t.Fatal(err)
			}
			admin.PExpire(ctx, key, time.Hour)
			before := dump(t, admin, key)
			held, err := l.Try(ctx, "key")
			if failure, ok := errors.AsType[*script.Error](err); held != nil || !ok || !errors.Is(failure, script.ErrFailed) {
				t.Errorf("Try of %s: got %v, %v, want no lock and ErrFailed", name, held, err)
			}
			if held, err := l.As("o").Acquire(ctx, "key"); held != nil || !errors.Is(err, script.ErrFailed) {
				t.Errorf("Acquire of %s: got %v, %v, want no lock and ErrFailed", name, held, err)
			}
			if after := dump(t, admin, key); after != before {
				t.Errorf("%s: got %s after the calls, want %s as before", name, after, before)
			}
			admin.Del(ctx, key)
			if held, err = l.Try(ctx, "key"); err != nil {
				t.Fatal(err)
			}
			admin.Del(ctx, key)
			if err := make(); err != nil {
				t.Fatal(err)
			}
			if err := held.Extend(ctx, time.Minute); err == nil {
				t.Errorf("Extend of %s: got no error, want one", name)
			}
			if err := held.Release(ctx); err == nil {
				t.Errorf("Release of %s: got no error, want one", name)
			}
			admin.Del(ctx, key)
		}
	})
}

func dump(t *testing.T, admin redis.UniversalClient, key string) string {
	t.Helper()
	if fields, err := admin.HGetAll(t.Context(), key).Result(); err == nil {
		return fmt.Sprint(fields)
	}
	return fmt.Sprint(admin.Get(t.Context(), key).Val(), admin.SMembers(t.Context(), key).Val())
}
