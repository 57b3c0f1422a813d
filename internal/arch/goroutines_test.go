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

// TestGoroutinesStartInOnePlace: a panic on a goroutine or a timer ends the process unless
// something recovers it, which core/internal/background does.
func TestGoroutinesStartInOnePlace(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{
		"core", "nethttp", "ginlimit", "echolimit", "echo5limit", "fiberlimit", "fiber3limit",
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
			if most := recovers[filepath.ToSlash(path)]; len(found) != most {
				t.Errorf("got goroutines and timers that are started at %q, want %d: use core/internal/background, which recovers", found, most)
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

// recovers are the files that may not import the one place, and how many goroutines they
// start that recover by themselves.
var recovers = map[string]int{"../../internal/gatefiber/leave.go": 1}

// starts returns where a file starts goroutines, or timers that call a function.
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
			if !ours && (n.Sel.Name == "AfterFunc" || n.Sel.Name == "Go") { // also of a WaitGroup or an errgroup
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
}`
	if got := starts(t, "p.go", text); len(got) != 5 {
		t.Errorf("got %q, want five places", got)
	}
}
