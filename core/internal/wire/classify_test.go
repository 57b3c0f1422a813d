package wire

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

// returning is a script that returns errors of its own.
var returning = New("returning.lua", `
if ARGV[1] == 'timeout' or ARGV[1] == "ERR not an error" then return redis.error_reply('SOLDOUT none are left') end
local e = {err='BUSY seat taken'}
if e.err == 'ERR it is not the day' then return { err = "ERR it's too late" } end
if KEYS[2] then return redis.error_reply( "CLOSED" ) end
if KEYS[3] then return redis.error_reply('-ERR a dash') end
if KEYS[4] then return redis.error_reply 'ERR without parentheses' end
if KEYS[5] then return redis.error_reply('ERR the price is ' .. ARGV[2]) end
return {err =
  'ERR the day is over'}`, nil)

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

		"BUSYGROUP Consumer Group name already exists" + inside:             {ErrFailed, false},
		"BUSYKEY Target key name already exists." + inside:                  {ErrFailed, false},
		"WRONGTYPE Operation against a key holding the wrong kind of value": {ErrFailed, false}, // a script returns what pcall gave it

		// These refuse a call before it runs, or what a client sends before it.
		"ERR unknown command 'EVALSHA', with args beginning with: '0000' '1' 'k' ": {ErrConfiguration, false},
		"ERR unknown command `evalsha`, with args beginning with: `0000`, ":        {ErrConfiguration, false},
		"ERR Unknown command":                                 {ErrConfiguration, false},
		"unsupported command 'eval'":                          {ErrConfiguration, false},
		"ERR wrong number of arguments for 'evalsha' command": {ErrConfiguration, false},
		"wrong number of arguments for 'eval' command":        {ErrConfiguration, false},
		"ERR DB index is out of range":                        {ErrConfiguration, false},
		"ERR invalid DB index":                                {ErrConfiguration, false},
		"ERR SELECT is not allowed in cluster mode":           {ErrConfiguration, false},
		"ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?": {ErrConfiguration, false},
		"ERR Client sent AUTH, but no password is set": {ErrConfiguration, false},
		"ERR invalid password":                         {ErrConfiguration, false},
		"DENIED Redis is running in protected mode because protected mode is enabled and no password is set": {ErrConfiguration, false},
		"DENIED Running in protected mode because protected mode is enabled":                                 {ErrConfiguration, false},
		"ERR Unknown Redis command called from script" + inside:                                              {ErrFailed, false},
		"ERR Wrong number of args calling Redis command from script" + inside:                                {ErrFailed, false},

		// These are what the script below returns.
		"BUSY seat taken":         {ErrFailed, false},
		"SOLDOUT none are left":   {ErrFailed, false},
		"ERR CLOSED":              {ErrFailed, false}, // Redis 7 adds the code
		"CLOSED":                  {ErrFailed, false},
		"ERR the day is over":     {ErrFailed, false},
		"ERR it's too late":       {ErrFailed, false},
		"ERR a dash":              {ErrFailed, false},
		"ERR without parentheses": {ErrFailed, false},

		// These may be anybody's. Some of them stand in the script, but not as its errors.
		"upstream failure":             {ErrMaybeExecuted, false},
		"no upstream host":             {ErrMaybeExecuted, false},
		"upstream protocol error":      {ErrMaybeExecuted, false},
		"ERR Connection timed out":     {ErrMaybeExecuted, false},
		"ERR internal error":           {ErrMaybeExecuted, false},
		"ERR server closed connection": {ErrMaybeExecuted, false},
		"ERR timeout":                  {ErrMaybeExecuted, false},
		"ERR":                          {ErrMaybeExecuted, false},
		"":                             {ErrMaybeExecuted, false},
		"none are left":                {ErrMaybeExecuted, false},
		"SOLDOUT none":                 {ErrMaybeExecuted, false},
		"SOLDOUT none are left or so":  {ErrMaybeExecuted, false},
		"ERR it is not the day":        {ErrMaybeExecuted, false},
		"ERR not an error":             {ErrMaybeExecuted, false},
		"ERR the price is 17":          {ErrMaybeExecuted, false},
		"ASKING too much":              {ErrMaybeExecuted, false},
		"ASK me":                       {ErrMaybeExecuted, false},
		"MOVED away":                   {ErrMaybeExecuted, false},
		"LOADING dock closed":          {ErrMaybeExecuted, false},
		"NOSCRIPT for you":             {ErrMaybeExecuted, false},
		"OOM for you":                  {ErrMaybeExecuted, false},
		"NOSCRIPT No matching script. Please use EVAL." + inside:                                        {ErrFailed, false},
		"WRONGTYPE Operation against a key holding the wrong kind" + inside:                             {ErrFailed, false},
		"ERR Error running script (call to f_4f0e): @user_script:3: @user_script: 3: -BUSYGROUP exists": {ErrFailed, false},
	} {
		written := returning.Classify(reply(text), true)
		if want := (Verdict{want.class, want.again, want.class == ErrMaybeExecuted}); written != want {
			t.Errorf("%q: got %+v, want %+v", text, written, want)
		}
		if !written.Unknown {
			continue
		}
		want := Verdict{Class: ErrNotExecuted, Again: true, Unknown: true}
		if unwritten := returning.Classify(reply(text), false); unwritten != want {
			t.Errorf("%q to a call that was not written: got %+v, want %+v", text, unwritten, want)
		}
	}
}

func TestErrorsAreToldApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err     error
		written bool
		want    Verdict
	}{
		{io.EOF, true, Verdict{Class: ErrMaybeExecuted}},
		{io.EOF, false, Verdict{Class: ErrNotExecuted, Again: true}},
		{redis.ErrPoolTimeout, false, Verdict{Class: ErrNotExecuted, Again: true}},
		{redis.ErrClosed, false, Verdict{Class: ErrConfiguration}},
		{errors.New("redis: can't marshal struct {} (implement encoding.BinaryMarshaler)"), true, Verdict{Class: ErrConfiguration}},
	} {
		if got := returning.Classify(c.err, c.written); got != c.want {
			t.Errorf("%v, written %v: got %+v, want %+v", c.err, c.written, got, c.want)
		}
	}
}
