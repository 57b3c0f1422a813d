package script_test

import (
	"io"
	"testing"

	"github.com/neap-go/neap/core/script"
)

type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

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
		if got := (&script.Error{Err: reply(text)}).Code(); got != want {
			t.Errorf("%q: got the code %q, want %q", text, got, want)
		}
	}
	if got := (&script.Error{Err: io.EOF}).Code(); got != "" {
		t.Errorf("without a reply: got the code %q, want none", got)
	}
}
