package lock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

// oneTick is a model of the record of a tick. Its times are in milliseconds.
type oneTick struct {
	again     bool
	known     bool
	open      bool
	owner     string
	fence     int64
	ttl, keep int64
	tick, now int64
	ends      int64 // the TTL of the record, or immortal
}

const modelRetention = 3_600_000

// modelTTL is the lease that a hold asks for.
func modelTTL(hold string) int64 { return map[string]int64{"a": 1000, "b": 1000, "c": 3000}[hold] }

// left returns for how long the run still has its lease. It heals a record if need be.
func (m *oneTick) left() (left int64, mended bool) {
	left = m.ends - m.now - m.keep
	if m.ends != immortal && left <= m.ttl {
		return left, false
	}
	return m.ttl, true
}

func (m *oneTick) start(hold string) int64 {
	ttl, keep := modelTTL(hold), 2*modelRetention+max(m.tick-m.now, 0)
	if m.owner != "" {
		left, mended := m.left()
		if mended {
			m.ends = m.now + left + m.keep
		}
		if m.owner == hold {
			m.ends = m.now + max(left, ttl) + m.keep
			return m.fence
		}
		if m.again && left > 0 {
			return -left
		}
	} else if m.known && m.ends == immortal {
		m.ends = m.now + keep
	}
	if m.known && (!m.again || !m.open) {
		return 0
	}
	m.known, m.open, m.owner, m.ttl, m.keep = true, true, hold, ttl, keep
	m.ends = m.now + ttl + keep
	m.fence = max(m.fence+1, m.now*1000)
	return m.fence
}

func (m *oneTick) extend(hold string, fence, ttl int64) int64 {
	if m.owner != hold {
		if m.known && m.fence > fence {
			return -1
		}
		return -2
	}
	left, mended := m.left()
	if left <= 0 {
		return 0
	}
	m.ttl = max(m.ttl, ttl)
	if ttl > left || mended {
		left = max(left, ttl)
		m.ends = m.now + left + m.keep
	}
	return left
}

func (m *oneTick) end(hold, how string, fence int64) int64 {
	switch {
	case !m.known:
		return -2
	case m.owner != hold && m.fence > fence:
		return -1
	case m.owner != hold:
		return -3
	case how == "undone":
		*m = oneTick{again: m.again, tick: m.tick, now: m.now}
		return 1
	case how == "completed":
		m.open = false
	}
	m.owner = ""
	return 1
}

// lives is the TTL of the record, as Redis reports it.
func (m *oneTick) lives() time.Duration {
	switch {
	case !m.known:
		return -2
	case m.ends == immortal:
		return immortal
	}
	return time.Duration(m.ends-m.now) * time.Millisecond
}

// TestOnceIsItsModel runs the scripts and the model side by side. The steps are starts,
// extensions, ends and pauses in any order, also repeated ones of one hold. The clock is
// set back, and records lose their TTL.
func TestOnceIsItsModel(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	server.ClockTTL(true)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { rdb.Close() })
	r := redistest.Rand(t)
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC).UnixMilli()
	const length = 20
	for history := range max(redistest.Ops(40_000)/length, 1) {
		m := oneTick{again: history%2 == 0, tick: now, now: now}
		mode, hows := "never", []string{"completed", "failed", "undone"}
		if m.again {
			mode, hows = "again", hows[:2]
		}
		key, told := fmt.Sprint("once-", history), map[string]int64{}
		said := ""
		for range length {
			server.SetTime(time.UnixMilli(m.now).UTC())
			hold := string(rune('a' + r.IntN(3)))
			fence := told[hold] * int64(r.IntN(2))
			var got, want int64
			var err error
			switch n := r.IntN(12); {
			case n < 7:
				got, err = rdb.Eval(t.Context(), script.FromFS(lua.FS, "once_start.lua").Source(), []string{key}, hold, modelTTL(hold), modelRetention, m.tick, mode, "").Int64()
				if want = m.start(hold); want > 0 {
					told[hold] = want
				}
				said += fmt.Sprintf("%d: start %s: %d\n", m.now-m.tick, hold, got)
			case n < 8:
				ttl := r.Int64N(5000)
				got, err = rdb.Eval(t.Context(), script.FromFS(lua.FS, "lock_extend.lua").Source(), []string{key}, hold, fence, ttl).Int64()
				want = m.extend(hold, fence, ttl)
				said += fmt.Sprintf("%d: extend %s to %d, by %d: %d\n", m.now-m.tick, hold, ttl, fence, got)
			case n < 10:
				how := hows[r.IntN(len(hows))]
				got, err = rdb.Eval(t.Context(), script.FromFS(lua.FS, "once_end.lua").Source(), []string{key}, hold, fence, how).Int64()
				want = m.end(hold, how, fence)
				said += fmt.Sprintf("%d: end %s, %s, by %d: %d\n", m.now-m.tick, hold, how, fence, got)
			case !m.known || m.ends == immortal:
			case n == 10:
				m.ends = immortal
				err = rdb.Persist(t.Context(), key).Err()
				said += "it lives for ever\n"
			default: // miniredis does not change the TTL when its clock is set
				m.now -= []int64{1, 500, 1000, 100_000}[r.IntN(4)]
				server.SetTime(time.UnixMilli(m.now).UTC())
				err = rdb.PExpire(t.Context(), key, m.lives()).Err()
				said += fmt.Sprintf("%d: the clock was set back\n", m.now-m.tick)
			}
			if lives := rdb.PTTL(t.Context(), key).Val(); err != nil || got != want || lives != m.lives() {
				t.Fatalf("%s: got %d, want %d; the record lives for %v, want %v; %v\n%s",
					mode, got, want, lives, m.lives(), err, said)
			}
			m.now += []int64{0, 0, 0, 1, 500, 999, 1000}[r.IntN(7)]
		}
		now = m.now + 1
	}
}
