package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestGeneratorsTakeTheirSeedFromRedistest: a test that draws numbers draws them
// from redistest.Rand, or from redistest.Seed and a stream's number, so that
// NEAP_TEST_SEED generates the same again.
func TestGeneratorsTakeTheirSeedFromRedistest(t *testing.T) {
	t.Parallel()
	drawing := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, "/redistest/port.go") { // two processes must not draw the same ports
			return nil
		}
		harness := strings.Contains(path, "/internal/history/") || strings.Contains(path, "/internal/redistest/")
		if draws := strings.HasSuffix(path, "_test.go") || harness && filepath.Ext(path) == ".go"; !draws {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if name, ok := importedAs(file, "math/rand/v2"); ok {
			drawing++
			for _, fault := range unseeded(file, name) {
				t.Errorf("%s: %s: take redistest.Rand(t), or redistest.Seed(t) and the number of a stream", set.Position(fault.Pos()), fault.Sel.Name)
			}
		}
		if _, ok := importedAs(file, "math/rand"); ok {
			t.Errorf("%s: math/rand: take redistest.Rand(t)", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if drawing < 10 {
		t.Errorf("%d files draw numbers, want 10 at least", drawing)
	}
}

// importedAs is the name by which a file calls a package that it imports.
func importedAs(file *ast.File, path string) (name string, ok bool) {
	for _, spec := range file.Imports {
		if p, _ := strconv.Unquote(spec.Path.Value); p == path {
			if spec.Name != nil {
				return spec.Name.Name, true
			}
			return "rand", true
		}
	}
	return "", false
}

// unseeded are the uses of package math/rand/v2, which the file calls name, that
// draw from its own source, or from a seed that stands in the file.
func unseeded(file *ast.File, name string) (faults []*ast.SelectorExpr) {
	of := func(n ast.Node) *ast.SelectorExpr {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == name {
				return s
			}
		}
		return nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if f := of(call.Fun); f != nil && f.Sel.Name == "NewPCG" {
				if _, literal := call.Args[0].(*ast.BasicLit); literal {
					faults = append(faults, f)
				}
			}
		}
		if s := of(n); s != nil {
			switch s.Sel.Name {
			case "New", "NewPCG", "Rand", "Source":
			default:
				faults = append(faults, s)
			}
		}
		return true
	})
	return faults
}
