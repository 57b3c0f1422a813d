package main

import (
	"testing"

	"github.com/neap-go/neap/lua"
)

// TestScriptIsWhatRedisRuns for limiters of one policy and of several.
func TestScriptIsWhatRedisRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"window 5/1h"}, lua.Lone("window").Text},
		{[]string{"bucket 5000/1s"}, lua.Lone("fast").Text},
		{[]string{"--for", "merged", "window 5/1h"}, lua.Take(false, false, "window").Text},
		{[]string{"--for", "settlement", "calendar 5/day"}, lua.Settle("calendar").Text},
		{[]string{"bucket 10/1s", "calendar 1000/day"}, lua.Take(false, false, "bucket", "calendar").Text},
		{[]string{"--for", "merged", "bucket 10/1s", "calendar 1000/day"}, lua.Take(false, false, "bucket", "calendar").Text},
		{[]string{"window 5/1h ban 5/1m for 10m"}, lua.Take(true, false, "window").Text},
		{[]string{"--holds", "bucket 10/1s"}, lua.Take(true, false, "bucket").Text},
		{[]string{"--overrides", "bucket 10/1s kept name rate"}, lua.Take(true, false, "kept").Text},
	} {
		if got := neap(t, append([]string{"script"}, c.args...)...); got.code != exitFound || got.out != c.want || got.errs != "" {
			t.Errorf("neap script %q: got the status %d, %d bytes and %q, want %d bytes of Lua", c.args, got.code, len(got.out), got.errs, len(c.want))
		}
	}
	neap(t, "script", "window").wants(t, exitUsage, "ends too early")
	neap(t, "script", "window 0/1h").wants(t, exitUsage, "Limit")
}
