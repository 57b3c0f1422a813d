package idempotency_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/history"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

// swapped is a client that runs another script in place of one of the guard's.
type swapped struct {
	history.Client
	script, with string
}

func (s swapped) Process(ctx context.Context, cmd redis.Cmder) error {
	args := redistest.Write(cmd)
	if name, ok := scriptNames[args[1]]; !ok || name != s.script {
		return s.Client.Process(ctx, cmd)
	}
	instead := redis.NewCmd(ctx, append([]any{"eval", s.with}, args[2:]...)...)
	err := s.Client.Process(ctx, instead)
	cmd.SetErr(err)
	cmd.(interface{ SetVal(any) }).SetVal(instead.Val())
	return err
}

// completes does not compare the owner.
const completesForAnybody = `
	local line = ARGV[2] .. ' ' .. ARGV[4] .. ' ' .. ARGV[5] .. ' 0 0 ' .. ARGV[1] .. ' ' .. ARGV[6] .. '\n'
	redis.call('SET', KEYS[1], line .. ARGV[7], 'PX', ARGV[3])
	return 1`

// schedules do the things that a guard may get wrong, each of them one, between steps
// that go well.
var schedules = map[string]func(t *testing.T, actors []*actor, key string){
	"another completes it": func(t *testing.T, actors []*actor, key string) {
		t.Helper()
		late := actors[0].holds(t, key)
		actors[3].forget(t, key)
		actors[1].begin(t, key)
		actors[0].conclude(t, late, 2)
		actors[2].begin(t, key)
	},
	"another gives it up": func(t *testing.T, actors []*actor, key string) {
		t.Helper()
		late := actors[0].holds(t, key)
		actors[3].forget(t, key)
		actors[1].begin(t, key)
		actors[0].conclude(t, late, 0)
		actors[2].begin(t, key)
	},
	"it is renewed after it was forgotten": func(t *testing.T, actors []*actor, key string) {
		t.Helper()
		late := actors[0].holds(t, key)
		actors[3].forget(t, key)
		actors[1].begin(t, key)
		actors[0].renew(t, late)
	},
}

// holds makes the actor begin, whatever the record was before.
func (a *actor) holds(t *testing.T, key string) holds {
	t.Helper()
	a.forget(t, key)
	a.begin(t, key)
	if len(a.has) == 0 {
		t.Fatal("got no claim, want one")
	}
	c := a.has[len(a.has)-1]
	a.has = nil
	return c
}

// TestCheckerFindsWhatIsWrong runs the schedules on guards that are wrong in one known
// way each, and on the library's own. Each seed finds every fault, and nothing else.
func TestCheckerFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	srv, seed := redistest.Standalone(t), redistest.Seed(t)
	prefix, rdb := srv.Prefix(t), srv.Client(t)
	n := 0
	without := func(source, check string) string {
		if !strings.Contains(source, check) {
			t.Fatalf("the script has no %q that the test can remove", check)
		}
		return strings.Replace(source, check, "false", 1)
	}
	for name, c := range map[string]struct{ script, with, wrong string }{
		"completes for anybody": {"complete", completesForAnybody, "another completes it"},
		"abandons for anybody":  {"abandon", without(script.FromFS(lua.FS, "guard_abandon.lua").Source(), "who ~= owner"), "another gives it up"},
		"renews for anybody":    {"renew", without(script.FromFS(lua.FS, "guard_renew.lua").Source(), "who ~= owner"), "it is renewed after it was forgotten"},
		"neap":                  {},
	} {
		for schedule, play := range schedules {
			for stream := range uint64(10) {
				in := &linear{Recorder: history.NewRecorder()}
				rng := rand.New(rand.NewPCG(seed, stream))
				guard := linearGuard(t, swapped{history.Client{Client: rdb, Stray: in.stray}, c.script, c.with},
					fmt.Sprint(prefix, "-", n), 5*time.Second)
				n++
				var actors []*actor
				for i := range 4 {
					actors = append(actors, &actor{id: i, rng: rng, guard: guard, in: in})
				}
				chatter := func() {
					for range 5 + rng.IntN(10) {
						a, key := actors[rng.IntN(len(actors))], fmt.Sprint("key", rng.IntN(linearKeys))
						a.conclude(t, a.holds(t, key), 2)
						a.begin(t, key)
					}
				}
				chatter()
				play(t, actors, fmt.Sprint("key", rng.IntN(linearKeys)))
				chatter()
				want := porcupine.Ok
				if schedule == c.wrong {
					want = porcupine.Illegal
				}
				if got := history.Check(linearModel, in.Ops(), linearEnd); got != want {
					t.Errorf("%s, %s, stream %d: got a history that is %s, want %s", name, schedule, stream, got, want)
				}
			}
		}
	}
}
