package lock_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

// oneTick is a model of a tick's record; times are in milliseconds.
type oneTick struct {
	again     bool
	known     bool
	open      bool
	owner     string
	fence     int64
	now, ends int64
}

const modelTTL = 1000

func (m *oneTick) start(hold string) int64 {
	switch {
	case m.owner == hold:
		m.ends = max(m.ends, m.now+modelTTL)
		return m.fence
	case m.again && m.owner != "" && m.now < m.ends:
		return m.now - m.ends
	case m.known && (!m.again || !m.open):
		return 0
	}
	m.known, m.open, m.owner, m.ends = true, true, hold, m.now+modelTTL
	m.fence = max(m.fence+1, m.now*1000)
	return m.fence
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
		*m = oneTick{again: m.again, now: m.now}
		return 1
	case how == "completed":
		m.open = false
	}
	m.owner = ""
	return 1
}

// TestOnceIsItsModel runs the scripts and the model side by side, in any order
// of starts, ends and pauses, of holds that are asked for more than once too.
func TestOnceIsItsModel(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	server.ClockTTL(true)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { rdb.Close() })
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC).UnixMilli()
	const length = 20
	for history := range redistest.Ops(40_000) / length {
		m := oneTick{again: history%2 == 0, now: now}
		mode, hows := "never", []string{"completed", "failed", "undone"}
		if m.again {
			mode, hows = "again", hows[:2]
		}
		key, tick, told := fmt.Sprint("once-", history), now, map[string]int64{}
		said := ""
		for range length {
			server.SetTime(time.UnixMilli(m.now).UTC())
			hold := string(rune('a' + r.IntN(3)))
			var got, want int64
			var err error
			if r.IntN(3) > 0 {
				got, err = rdb.Eval(t.Context(), lua.OnceStart, []string{key}, hold, modelTTL, 3_600_000, tick, mode, "").Int64()
				if want = m.start(hold); want > 0 {
					told[hold] = want
				}
				said += fmt.Sprintf("%d: start %s: %d\n", m.now-tick, hold, got)
			} else {
				how, fence := hows[r.IntN(len(hows))], told[hold]*int64(r.IntN(2))
				got, err = rdb.Eval(t.Context(), lua.OnceEnd, []string{key}, hold, fence, how).Int64()
				want = m.end(hold, how, fence)
				said += fmt.Sprintf("%d: end %s, %s, by %d: %d\n", m.now-tick, hold, how, fence, got)
			}
			if err != nil || got != want {
				t.Fatalf("seed %d, %s: %d, and not %d, %v\n%s", seed, mode, got, want, err, said)
			}
			m.now += []int64{0, 0, 0, 1, modelTTL / 2, modelTTL - 1, modelTTL}[r.IntN(7)]
		}
		now = m.now + 1
	}
}
