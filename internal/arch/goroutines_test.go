package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestGoroutinesAndLogsAreContained: a panic on a goroutine or a timer ends the process unless
// something recovers it, which core/internal/background does. It also contains handlers of
// the log, so that none of them takes a grant with it.
func TestGoroutinesAndLogsAreContained(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{
		"core", "nethttp", "ginlimit", "echolimit", "echo5limit", "fiberlimit", "fiber3limit", "hertzlimit", "grpclimit", "kratoslimit",
		"internal/gatehttp", "internal/gatefiber", "internal/isnil", "internal/address", "internal/labels", "console", "contrib",
	} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, entry fs.DirEntry, err error) error {
			switch name := entry.Name(); {
			case err != nil:
				return err
			case entry.IsDir() && startsThemselves[name]:
				return filepath.SkipDir
			case entry.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
				return nil
			}
			found := starts(t, path, nil)
			if want := recovers[filepath.ToSlash(path)]; len(found) != want {
				t.Errorf("got goroutines, timers or lines of the log at %q, want %d: use core/internal/background, which recovers", found, want)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// startsThemselves are folders of the one place, and of tests.
var startsThemselves = map[string]bool{"background": true, "gatetest": true, "scripttest": true, "fibertest": true, "browsertest": true, "labelstest": true, "testdata": true}

// recovers are the files that may not import the one place, and how many goroutines and
// lines of theirs recover by themselves.
var recovers = map[string]int{}

// logs are the functions of slog that call a handler.
var logs = map[string]bool{"Debug": true, "Info": true, "Warn": true, "Error": true, "Log": true, "LogAttrs": true, "Default": true}

// starts returns where a file starts goroutines, or timers that call a function, or writes
// to the log.
func starts(t *testing.T, path string, text any) (where []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			where = append(where, files.Position(n.Pos()).String())
		case *ast.SelectorExpr:
			of, _ := n.X.(*ast.Ident)
			ours := of != nil && of.Name == "background"
			isSlog := of != nil && of.Name == "slog"
			if !ours && (n.Sel.Name == "AfterFunc" || n.Sel.Name == "Go") || isSlog && logs[n.Sel.Name] { // also Go of a WaitGroup or an errgroup
				where = append(where, files.Position(n.Pos()).String())
			}
		}
		return true
	})
	return where
}

func TestStartsFindsWhatStarts(t *testing.T) {
	t.Parallel()
	const text = `package p
func f() {
	go f()
	time.AfterFunc(0, f)
	context.AfterFunc(ctx, f)
	all.Go(f)
	background.Go(f)
	background.AfterFunc(0, f)
	g := time.AfterFunc
	slog.Error("text")
	slog.Default().Error("text")
}`
	if got := starts(t, "p.go", text); len(got) != 7 {
		t.Errorf("got %q, want seven places", got)
	}
}
