package limit

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// TestWithoutEval has a user who may run nothing but what an admin has loaded,
// by the documented line: every kind of decision and Warm work with it. On a
// server that has lost the scripts each call says so at once.
func TestWithoutEval(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	user := redistest.NewUser(t, redistest.LoadedRules(), srv)
	rdb := srv.Client(t, func(o *redis.Options) { o.Username = user })
	sets := [][]Policy{oneOfEach}
	for i := range oneOfEach {
		sets = append(sets, oneOfEach[i:i+1])
	}
	for _, lost := range []bool{true, false, true} {
		if lost {
			if err := admin.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		} else {
			srv.LoadScripts(t)
		}
		for _, policies := range sets {
			l, err := New(rdb, "loaded", policies, &Options{Prefix: prefix, Budget: 5 * time.Second, Fail: FailClosed})
			if err != nil {
				t.Fatal(err)
			}
			for name, call := range map[string]func() error{
				"Take":  func() error { _, err := l.Take(t.Context(), "s"); return err },
				"Peek":  func() error { _, err := l.Peek(t.Context(), "s"); return err },
				"Reset": func() error { return l.Reset(t.Context(), "s") },
				"Warm":  func() error { return l.Warm(t.Context()) },
			} {
				began := time.Now()
				err := call()
				switch {
				case !lost && err != nil:
					t.Errorf("%s of %d policies: %v", name, len(policies), err)
				case lost && (!errors.Is(err, script.ErrConfiguration) || !strings.Contains(err.Error(), "'eval'")):
					t.Errorf("%s of %d policies without its script: %v", name, len(policies), err)
				case lost && time.Since(began) > 2*time.Second:
					t.Errorf("%s took %v to say so: it was tried again", name, time.Since(began))
				}
			}
		}
	}
}
