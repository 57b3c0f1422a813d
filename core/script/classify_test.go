package script

import (
	"errors"
	"io"
	"testing"

	"github.com/redis/go-redis/v9"
)

type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

var _ redis.Error = reply("")

// TestRepliesAreToldApart classifies what servers and scripts reply.
func TestRepliesAreToldApart(t *testing.T) {
	t.Parallel()
	const inside = " script: 4f0e, on @user_script:12."
	for text, want := range map[string]struct {
		class error
		again bool
	}{
		"NOSCRIPT No matching script. Please use EVAL.":                                          {ErrNotExecuted, true},
		"MOVED 3999 127.0.0.1:6381":                                                              {ErrNotExecuted, true},
		"ASK 3999 127.0.0.1:6381":                                                                {ErrNotExecuted, true},
		"TRYAGAIN Multiple keys request during rehashing of slot":                                {ErrNotExecuted, true},
		"CLUSTERDOWN The cluster is down":                                                        {ErrNotExecuted, true},
		"CLUSTERDOWN Hash slot not served":                                                       {ErrNotExecuted, true},
		"LOADING Redis is loading the dataset in memory":                                         {ErrNotExecuted, true},
		"LOADING Valkey is loading the dataset in memory":                                        {ErrNotExecuted, true},
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":       {ErrNotExecuted, true},
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.": {ErrNotExecuted, true},
		"READONLY You can't write against a read only replica." + inside:                         {ErrNotExecuted, true},
		"NOREPLICAS Not enough good replicas to write." + inside:                                 {ErrNotExecuted, true},
		"OOM command not allowed when used memory > 'maxmemory'." + inside:                       {ErrNotExecuted, false},
		"MISCONF Redis is configured to save RDB snapshots" + inside:                             {ErrNotExecuted, false},
		"ERR Error running script (call to f_4f0e): @user_script:3: @user_script: 3: -READONLY You can't write against a read only replica.": {ErrNotExecuted, true},
		"ERR max number of clients reached":                     {ErrNotExecuted, true},
		"NOAUTH Authentication required.":                       {ErrConfiguration, false},
		"WRONGPASS invalid username-password pair":              {ErrConfiguration, false},
		"NOPERM User x has no permissions to run 'evalsha'":     {ErrConfiguration, false},
		"CROSSSLOT Keys in request don't hash to the same slot": {ErrConfiguration, false},

		// These are replies of Redis 6, 7.0 and later to a command in a script.
		"ERR Error running script (call to f_4f0e): @user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand": {ErrConfiguration, false},
		"@user_script: 1: The user executing the script can't access at least one of the keys mentioned in the command arguments":                        {ErrConfiguration, false},
		"ERR The user executing the script can't run this command or subcommand" + inside:                                                                {ErrConfiguration, false},
		"ERR The user executing the script can't publish to the channel mentioned in the command":                                                        {ErrConfiguration, false},
		"ERR ACL failure in script: User x has no permissions to run the 'set' command" + inside:                                                         {ErrConfiguration, false},
		"ERR ACL failure in script: No permissions to access a key script: on @user_script:1.":                                                           {ErrConfiguration, false},
		"ERR The user executing the order is unknown" + inside:                                                                                           {ErrFailed, false},

		"BUSYGROUP Consumer Group name already exists" + inside: {ErrFailed, false},
		"BUSYKEY Target key name already exists." + inside:      {ErrFailed, false},
		"BUSY seat taken":     {ErrFailed, false},
		"ASKING too much":     {ErrFailed, false},
		"ASK me":              {ErrFailed, false},
		"MOVED away":          {ErrFailed, false},
		"LOADING dock closed": {ErrFailed, false},
		"NOSCRIPT for you":    {ErrFailed, false},
		"NOSCRIPT No matching script. Please use EVAL." + inside:                                        {ErrFailed, false},
		"WRONGTYPE Operation against a key holding the wrong kind" + inside:                             {ErrFailed, false},
		"ERR Error running script (call to f_4f0e): @user_script:3: @user_script: 3: -BUSYGROUP exists": {ErrFailed, false},
	} {
		class, again := classify(reply(text), true)
		if !errors.Is(class, want.class) || again != want.again {
			t.Errorf("%q: got %v, again %v, want %v, %v", text, class, again, want.class, want.again)
		}
	}
}

func TestErrorsAreToldApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err     error
		written bool
		class   error
		again   bool
	}{
		{io.EOF, true, ErrMaybeExecuted, false},
		{io.EOF, false, ErrNotExecuted, true},
		{redis.ErrPoolTimeout, false, ErrNotExecuted, true},
		{redis.ErrClosed, false, ErrConfiguration, false},
		{errors.New("redis: can't marshal struct {} (implement encoding.BinaryMarshaler)"), true, ErrConfiguration, false},
	} {
		if class, again := classify(c.err, c.written); !errors.Is(class, c.class) || again != c.again {
			t.Errorf("%v, written %v: got %v, again %v, want %v, %v", c.err, c.written, class, again, c.class, c.again)
		}
	}
}

// TestCodes has the replies of Redis before 7.0 and after.
func TestCodes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"OOM command not allowed when used memory > 'maxmemory'. script: 1f, on @user_script:1.":                                             "OOM",
		"ERR Error running script (call to f_1f): @user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.": "OOM",
		"@user_script: 1: -MISCONF Redis is configured to save RDB snapshots":                                                                "MISCONF",
		"@user_script: 1: The user executing the script can't access at least one of the keys":                                               "",
		"READONLY You can't write against a read only replica.":                                                                              "READONLY",
		"ERR no OOM here": "ERR",
	} {
		if got := (&Error{Err: reply(text)}).Code(); got != want {
			t.Errorf("%q: got the code %q, want %q", text, got, want)
		}
	}
	if got := (&Error{Err: io.EOF}).Code(); got != "" {
		t.Errorf("without a reply: got the code %q, want none", got)
	}
}
