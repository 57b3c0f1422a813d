package arch

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// adds are the modules that neap brings into a binary, beside those of the framework:
// docs/dependencies.md names them. go-redis compiles xxhash, atomic and sys.
var adds = []string{
	"github.com/cespare/xxhash/v2",
	"github.com/felixge/httpsnoop",
	"github.com/hashicorp/golang-lru/v2",
	module,
	"github.com/redis/go-redis/v9",
	"github.com/sony/gobreaker/v2",
	"go.uber.org/atomic",
	"golang.org/x/sys",
	"golang.org/x/text",
}

// transports reads the fields of others' answers, for nethttp.NewTransport.
const transports = "github.com/dunglas/httpsfv"

// testsOnly are requirements that tests alone have. docs/dependencies.md says what they
// cost users; compiling them is no part of it.
var testsOnly = []string{"github.com/anishathalye/porcupine"}

// TestAdaptersAddFewModules: an application compiles no module for an adapter but these
// and those of its framework.
func TestAdaptersAddFewModules(t *testing.T) {
	t.Parallel()
	touch(t)
	own := append([]string{transports}, adds...)
	slices.Sort(own)
	if got := modules(t, "", "./nethttp"); !slices.Equal(got, own) {
		t.Errorf("nethttp compiles the modules %q, want %q", got, own)
	}
	for _, a := range []struct {
		dir, adapter string
		framework    []string
		others       []string // adapters on which it stands
	}{
		{"", "./ginlimit", []string{gin}, nil},
		{"", "./echolimit", []string{echo + "/v4"}, nil},
		{"", "./fiberlimit", []string{fiber + "/v2"}, nil},
		{"echo5limit", ".", []string{echo + "/v5"}, nil},
		{"fiber3limit", ".", []string{fiber + "/v3"}, nil},
		{"hertzlimit", ".", []string{hertz + "/pkg/app"}, nil},
		{"grpclimit", ".", []string{"google.golang.org/grpc"}, nil},
		{"kratoslimit", ".", []string{kratos + "/transport/http", kratos + "/transport/grpc"}, []string{transports, module + "/grpclimit"}},
	} {
		known := slices.Concat(modules(t, a.dir, a.framework...), adds, a.others)
		for _, m := range modules(t, a.dir, a.adapter) {
			if !slices.Contains(known, m) && m != module+"/"+a.dir {
				t.Errorf("%s%s compiles module %s, which %s does not, want none but %q", a.dir, a.adapter, m, a.framework, adds)
			}
		}
	}
	text, err := os.ReadFile(root + "/docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range own {
		if name := strings.TrimPrefix(m, "github.com/"); m != module && !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/dependencies.md does not name %s, want each module that neap adds", name)
		}
	}
}

// TestAThirdPartyCouldWriteHertzlimit: this adapter is the example of docs/adapters.md. So
// neither it nor its tests import what others cannot.
func TestAThirdPartyCouldWriteHertzlimit(t *testing.T) {
	t.Parallel()
	touch(t)
	cmd := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}{{"\n"}}{{join .TestImports "\n"}}{{"\n"}}{{join .XTestImports "\n"}}`, "./...")
	cmd.Dir, cmd.Stderr = root+"/hertzlimit", os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	imports := strings.Fields(string(out))
	if !slices.Contains(imports, module+"/core/gate/adapter") {
		t.Errorf("hertzlimit imports %q, want core/gate/adapter among them", imports)
	}
	for _, i := range imports {
		if under(i, module) && slices.Contains(strings.Split(i, "/"), "internal") {
			t.Errorf("hertzlimit imports %s, want only what a third party can import", i)
		}
	}
}

// TestNoUserCompilesWhatTestsNeed keeps the requirements of tests out of what users
// import, those packages included that users import in tests.
func TestNoUserCompilesWhatTestsNeed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(root + "/docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	all := packages(t)
	for _, m := range testsOnly {
		if name := strings.TrimPrefix(m, "github.com/"); !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/dependencies.md does not name %s, want each requirement of tests", name)
		}
		for _, p := range all {
			if !under(p.path, "internal") && slices.ContainsFunc(p.deps, func(d string) bool { return under(d, m) }) {
				t.Errorf("%s compiles %s, want tests alone to do so", p.path, m)
			}
		}
	}
}

// modules are those whose packages these packages compile, in a directory of the module.
func modules(t *testing.T, dir string, paths ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-deps", "-f", `{{with .Module}}{{.Path}}{{end}}`}, paths...)...)
	cmd.Dir, cmd.Stderr = root+"/"+dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v", paths, err)
	}
	all := strings.Fields(string(out))
	slices.Sort(all)
	return slices.Compact(all)
}
