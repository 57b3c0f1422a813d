package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/neap-go/neap/examples/internal/quickstart"
)

// newer builds the program that serves Echo v5, Fiber v3 and Hertz. It is of a module of
// its own, because what these frameworks require would raise versions of this one.
func newer(module string, flags ...string) quickstart.Build {
	const remedy = "run `go run ./examples/quickstart` in a clone of neap, with go in the PATH; " +
		"-framework nethttp, gin, echo and fiber need neither"
	return func(ctx context.Context, dir string) (program string, err error) {
		if _, err := os.Stat(filepath.Join(module, "go.mod")); module == "" || err != nil {
			return "", errors.New("Echo v5, Fiber v3 and Hertz are served from the module examples/newer, which is not there: " + remedy)
		}
		if _, err := exec.LookPath("go"); err != nil {
			return "", fmt.Errorf("Echo v5, Fiber v3 and Hertz are served from a module that is to be built: %w: %s", err, remedy)
		}
		program = filepath.Join(dir, "quickstart.exe") // as Windows wants it
		args := slices.Concat([]string{"build", "-C", module, "-o", program}, flags, []string{"./quickstart"})
		if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return program, nil
	}
}

// newerModule is where the module was when this file was compiled; "" if the compiler
// did not note that (-trimpath).
func newerModule() string {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return ""
	}
	return filepath.Join(filepath.Dir(file), "..", "newer")
}
