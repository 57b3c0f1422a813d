package console

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"time"
)

var began = time.Now() // when this package was loaded, as the program began

// process says which of a service's processes the page is about.
type process struct {
	Host    string `json:"host"`
	Program string `json:"program"`
	PID     int    `json:"pid"`
	Version string `json:"version"` // of the program's module, or of its commit; "" if it was built without
	Up      int64  `json:"up"`      // seconds
}

func thisProcess() *process {
	host, _ := os.Hostname()
	return &process{host, filepath.Base(os.Args[0]), os.Getpid(), version(debug.ReadBuildInfo()), int64(time.Since(began) / time.Second)}
}

// version is how a build is told from others: a released version or, of a build from a
// checkout, the commit.
func version(build *debug.BuildInfo, known bool) string {
	if !known {
		return ""
	}
	if build.Main.Version != "" && build.Main.Version != "(devel)" {
		return build.Main.Version
	}
	for _, s := range build.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(len(s.Value), 12)]
		}
	}
	return ""
}
