package arch

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/neap-go/neap/internal/redistest"
)

// unexplained are functions without an Example, and why.
var unexplained = map[string]string{
	"core/gate.BodyAllowed":   "for authors of adapters",
	"core/gate.Unwrap":        "for authors of adapters",
	"core/gate/adapter.Watch": "it waits for the garbage collector",
	"core/store.Register":     "for the library's own packages",
}

// TestEachFunctionHasAnExample holds the packages that users import to what pkg.go.dev
// shows: an Example for each exported function and each policy. A function that makes a
// value of a type may also be called in an Example of that type. A function that takes a
// *testing.T has none, because an Example has no *testing.T.
func TestEachFunctionHasAnExample(t *testing.T) {
	t.Parallel()
	explained, exempt := 0, map[string]bool{}
	for dir, p := range importable(t) {
		check := func(f *doc.Func, of *doc.Type) {
			name := dir + "." + f.Name
			switch exempt[name] = unexplained[name] != ""; {
			case takesT(f.Decl) || exempt[name]:
			case len(f.Examples) > 0 || of != nil && calls(of, p.Name, f.Name):
				explained++
			default:
				t.Errorf("%s has no Example: write func Example%s in %s/example_test.go", name, f.Name, dir)
			}
		}
		for _, f := range p.Funcs {
			check(f, nil)
		}
		for _, typ := range p.Types {
			for _, f := range typ.Funcs {
				check(f, typ)
			}
			policy := slices.ContainsFunc(typ.Methods, func(m *doc.Func) bool { return m.Name == "PolicyName" })
			if policy && ast.IsExported(typ.Name) && len(typ.Examples) == 0 && !isInterface(typ) {
				t.Errorf("%s.%s has no Example: write func Example%s", dir, typ.Name, typ.Name)
			}
		}
	}
	for name := range unexplained {
		if !exempt[name] {
			t.Errorf("there is no function %s, want it not to be listed", name)
		}
	}
	if explained < 80 {
		t.Errorf("%d functions have an Example, want 80 at least", explained)
	}
}

// TestExamplesStandInOneFile: pkg.go.dev shows an Example with its imports and with the
// functions that it calls if all of them stand in its file. Otherwise it shows the body
// alone, and the reader cannot see what a helper does.
func TestExamplesStandInOneFile(t *testing.T) {
	t.Parallel()
	for dir, p := range importable(t) {
		for _, e := range examplesOf(p) {
			if e.Play == nil {
				t.Errorf("%s: Example%s uses names of another file: declare them in its own", dir, e.Name)
			}
			if e.Output == "" && !e.EmptyOutput {
				t.Errorf("%s: Example%s has no // Output, want one, so that go test runs it", dir, e.Name)
			}
		}
	}
}

// TestTheProgramInTheRootPackageCompiles vets the program that doc.go shows.
func TestTheProgramInTheRootPackageCompiles(t *testing.T) {
	t.Parallel()
	_, program, found := strings.Cut(importable(t)[rootPackage].Doc, "\n\tpackage main\n")
	if !found {
		t.Fatal("doc.go shows no program, want one that begins with package main")
	}
	code := "package main\n"
	for line := range strings.Lines(program) {
		if trimmed, indented := strings.CutPrefix(line, "\t"); indented || line == "\n" {
			code += trimmed
		} else {
			break
		}
	}
	file := filepath.Join(t.TempDir(), "main.go")
	write(t, file, code, 0o600)
	args := []string{"vet"}
	if redistest.Race { // what the race detector needs is compiled already
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, file)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go vet of the program in doc.go: %v\n%s\n%s", err, out, code)
	}
}

// TestTheRootPackageNamesEachPackage: pkg.go.dev shows doc.go first, and a reader finds
// the package of a task there.
func TestTheRootPackageNamesEachPackage(t *testing.T) {
	t.Parallel()
	all := importable(t)
	for dir := range all {
		if link := "[" + module + "/" + dir + "]"; dir != rootPackage && !strings.Contains(all[rootPackage].Doc, link) {
			t.Errorf("doc.go does not name %s, want a line with the link %s", dir, link)
		}
	}
}

// TestTheRootPackageLinksToPages: doc.go links to files of the main branch.
func TestTheRootPackageLinksToPages(t *testing.T) {
	t.Parallel()
	links := regexp.MustCompile(`https://`+regexp.QuoteMeta(module)+`/blob/main/(\S+)`).FindAllStringSubmatch(importable(t)[rootPackage].Doc, -1)
	if len(links) == 0 {
		t.Error("doc.go links to no page, want the documentation")
	}
	for _, link := range links {
		if _, err := os.Stat(filepath.Join(root, link[1])); err != nil {
			t.Errorf("doc.go links to %s, want a file there: %v", link[0], err)
		}
	}
}

// importable returns the packages that users import, of this module and of those beside
// it, by their directory within the repository.
func importable(t *testing.T) map[string]*doc.Package {
	t.Helper()
	all, err := documented()
	if err != nil {
		t.Fatal(err)
	}
	beside := []string{"echo5limit", "fiber3limit", "hertzlimit", "grpclimit", "kratoslimit", "contrib/prometheus", "contrib/otel"}
	for _, want := range append(beside, slices.Concat(layers[:len(layers)-1]...)...) {
		if all[want] == nil && !strings.Contains("/"+want+"/", "/internal/") {
			t.Fatalf("no package was read in %q, want one", want)
		}
	}
	return all
}

// documented reads the packages once for all tests, which must not change them.
var documented = sync.OnceValues(func() (map[string]*doc.Package, error) {
	all := map[string]*doc.Package{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if path != root && (strings.HasPrefix(d.Name(), ".") ||
			slices.Contains([]string{"internal", "cmd", "examples", "bench", "browsertest", "mutants", "testdata"}, d.Name())) {
			return fs.SkipDir
		}
		dir, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if dir == "." {
			dir = rootPackage
		}
		p, err := read(path, strings.TrimSuffix(module+"/"+filepath.ToSlash(dir), "/"))
		if p != nil {
			all[filepath.ToSlash(dir)] = p
		}
		return err
	})
	return all, err
})

// read returns the documentation of the package in a directory, with its examples. It
// returns nil if there is none.
func read(dir, path string) (*doc.Package, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	if !slices.ContainsFunc(names, func(name string) bool { return !strings.HasSuffix(name, "_test.go") }) {
		return nil, nil
	}
	return doc.NewFromFiles(set, files, path)
}

// calls reports whether an Example of a type, or of a method of it, calls a function.
func calls(typ *doc.Type, pkg, name string) (found bool) {
	examples := typ.Examples
	for _, m := range typ.Methods {
		examples = append(examples, m.Examples...)
	}
	for _, e := range examples {
		ast.Inspect(e.Code, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == name {
					x, ok := s.X.(*ast.Ident)
					found = found || ok && x.Name == pkg
				}
			}
			return !found
		})
	}
	return found
}

func examplesOf(p *doc.Package) (all []*doc.Example) {
	funcs := slices.Clone(p.Funcs)
	all = append(all, p.Examples...)
	for _, typ := range p.Types {
		all = append(all, typ.Examples...)
		funcs = append(append(funcs, typ.Funcs...), typ.Methods...)
	}
	for _, f := range funcs {
		all = append(all, f.Examples...)
	}
	return all
}

// takesT reports whether a function takes a *testing.T.
func takesT(f *ast.FuncDecl) bool {
	return slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool {
		star, ok := p.Type.(*ast.StarExpr)
		if !ok {
			return false
		}
		s, ok := star.X.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "T"
	})
}

func isInterface(typ *doc.Type) bool {
	spec, ok := typ.Decl.Specs[0].(*ast.TypeSpec)
	if !ok {
		return false
	}
	_, is := spec.Type.(*ast.InterfaceType)
	return is
}
