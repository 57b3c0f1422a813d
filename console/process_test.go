package console

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	of := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}
	for name, c := range map[string]struct {
		build *debug.BuildInfo
		want  string
	}{
		"a release":                    {of("v1.2.3", commit), "v1.2.3"},
		"a checkout":                   {of("(devel)", commit), "0123456789ab"},
		"a checkout, without a commit": {of("(devel)"), ""},
		"no module":                    {of(""), ""},
		"no information":               {nil, ""},
	} {
		if got := version(c.build, c.build != nil); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
