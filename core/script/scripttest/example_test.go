package scripttest_test

import (
	"fmt"
	"testing"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/script/scripttest"
)

// highest keeps the highest score of a day. A script of yours is a file, which
// script.FromFS reads.
var highest = script.New("highest.lua", `-- Keeps the highest score of a day.
--
-- KEYS[1]  the score
-- ARGV[1]  score
-- ARGV[2]  ttl, in milliseconds
-- returns  the highest score
-- effects  SET with PX where the score is higher
local key, score, ttl = KEYS[1], ARGV[1] + 0, ARGV[2]
local best = (redis.call('GET', key) or 0) + 0
if score > best then
  redis.call('SET', key, score, 'PX', ttl)
  best = score
end
return best
`)

// The calls are made on miniredis, on a redis-server and on a cluster. A test of yours has
// the body of this function: func TestHighest(t *testing.T).
func ExampleRun() {
	testHighest := func(t *testing.T) {
		scripttest.Run(t, highest,
			scripttest.Call{Keys: []string{"score:{user-17}"}, Args: []any{7, 60_000}, Want: 7},
			scripttest.Call{Name: "a lower score", Keys: []string{"score:{user-17}"}, Args: []any{3, 60_000}, Want: 7},
			scripttest.Call{Keys: []string{"score:{user-17}"}, Args: []any{"much", 60_000}, Fails: "attempt to perform arithmetic"},
		)
	}
	_ = testHighest // go test calls yours; an example has no *testing.T
	// Output:
}

// faults stands for the *testing.T of a test, which an example has not. It prints what
// fails.
type faults struct{ testing.TB }

func (faults) Helper()                           {}
func (faults) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func ExampleCheckHeader() {
	var t faults // yours is func TestHeaders(t *testing.T)
	scripttest.CheckHeader(t, highest)
	scripttest.CheckHeader(t, script.New("forgotten.lua", `-- Counts.
--
-- KEYS[1]  the count
-- returns  the count
-- effects  none
return redis.call('INCRBY', KEYS[1], ARGV[1])
`))
	// Output:
	// forgotten.lua:6: ARGV[1] is used but not in the header
	// forgotten.lua:6: INCRBY is called but not among the effects
}
