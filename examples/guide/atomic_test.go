package guide

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

func TestADeniedRequestIsCharged(t *testing.T) {
	t.Parallel()
	pitfall[int]{
		asks: "the minute's counter after 5 requests were admitted and the day's limit denied 10",
		usual: func(s scene) int {
			for range 15 {
				_, err := AllowTwo(s.Context(), s.rdb, s.key)
				s.must(err)
			}
			return s.number("{" + s.key + "}:minute")
		},
		breaks: 15,
		neap: func(s scene) int {
			limiter := s.limiter(twoPolicies...)
			for range 15 {
				_, err := limiter.Take(s.Context(), "alice")
				s.must(err)
			}
			return s.number(s.key + ":limit:guide:{alice}:minute!window-100-1m")
		},
		holds: 5,
	}.run(t)
}

func TestNothingIsRolledBack(t *testing.T) {
	t.Parallel()
	// A list stands where the day's counter belongs.
	list := func(s scene, key string) {
		s.must(s.admin.RPush(s.Context(), key, "x").Err())
		s.must(s.admin.Expire(s.Context(), key, time.Minute).Err())
	}
	pitfall[int]{
		asks: "the minute's counter after a call that failed at the day's counter",
		usual: func(s scene) int {
			list(s, "{"+s.key+"}:day")
			if _, err := AllowTwo(s.Context(), s.rdb, s.key); err == nil {
				s.Error("the call that met a list: got no error, want one")
			}
			return s.number("{" + s.key + "}:minute")
		},
		breaks: 1,
		neap: func(s scene) int {
			list(s, s.key+":limit:guide:{alice}:day!window-5-24h")
			if _, err := s.limiter(twoPolicies...).Take(s.Context(), "alice"); err == nil {
				s.Error("the call that met a list: got no error, want one")
			}
			return s.number(s.key + ":limit:guide:{alice}:minute!window-100-1m")
		},
		holds: 0,
	}.run(t)
}

func TestAScriptThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	pitfall[string]{
		asks:   "what SCRIPT KILL says when all ten seats are taken",
		usual:  func(s scene) string { return takeEleven(s, usualSeat) },
		breaks: "UNKILLABLE",
		neap:   func(s scene) string { return takeEleven(s, seat) },
		holds:  "NOTBUSY",
	}.run(t, redistest.OnStandalone)
}

// takeEleven takes one seat too many, on a server of its own. Once the server says
// BUSY it kills the script that runs. Redis says BUSY after 5 s, here after 50 ms.
func takeEleven(s scene, script *redis.Script) (killed string) {
	srv := redistest.NewStandalone(s.T, "--lua-time-limit", "50")
	rdb := srv.Admin(s.T, func(o *redis.Options) { o.MaxRetries = -1 })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 11 {
			_ = script.Run(context.WithoutCancel(s.Context()), rdb, []string{s.key}, 1, 10).Err() // its connection breaks
		}
	}()
	redistest.Await(s.T, patience, "the seats to be taken", func() bool {
		select {
		case <-ended:
			return true
		default:
			return strings.HasPrefix(said(rdb.Ping(s.Context()).Err()), "BUSY")
		}
	})
	killed, _, _ = strings.Cut(said(rdb.ScriptKill(s.Context()).Err()), " ")
	srv.Stop(s.T)
	<-ended
	return killed
}
