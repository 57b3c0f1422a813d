// Package arch holds the library's packages to the one direction of imports
// and to the frameworks that each of them may compile.
package arch

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module = "github.com/neap-go/neap"
	root   = "../.."

	rootPackage = "" // its path within the module

	gin       = "github.com/gin-gonic/gin"
	echo      = "github.com/labstack/echo"
	fiber     = "github.com/gofiber/fiber"
	kratos    = "github.com/go-kratos/kratos/v2"
	fasthttp  = "github.com/valyala/fasthttp"
	hertz     = "github.com/cloudwego/hertz"
	miniredis = "github.com/alicebob/miniredis"
	goredis   = "github.com/redis/go-redis"
)

// layers are the library's rooms from the bottom up: a package imports
// packages of lower layers and of its own room, and nothing else of this
// module. A room without a package is a fault: a rule about it holds of nothing.
var layers = [][]string{
	{rootPackage, "lua", "core/internal/misuse", "core/internal/background", "internal/isnil", "internal/address", "core/limit/internal/kind"},
	{"core/internal/keyspace", "core/internal/lease", "core/internal/queue"},
	{"core/internal/wire", "core/limit/internal/cache"},
	{"core/internal/call", "core/limit/internal/cells", "core/limit/internal/denials", "core/limit/internal/prepaid", "core/limit/internal/line"},
	{"core/internal/inside"},
	{"core/script"},
	{"core/internal", "internal/redistest"},
	{"core/store"},
	{"core/internal/ask"},
	{"core/internal/decisions"},
	{"core/script/scripttest", "neaptest"}, // for users' tests: what starts servers, and what does without
	{"core/limit/internal/wire"},
	{"core/limit", "core/inflight", "core/lock", "core/idempotency", "core/stock"},
	{"core/gate", "core/outgoing", "contrib/redis_rate"}, // the third is a limiter in another library's words
	{"internal/iptable", "internal/gatefake"},
	{"core/gate/adapter"}, // what a third party's adapter is made of
	{"internal/gatehttp", "core/gate/gatetest", "core/callback"},
	{"internal/gatefiber"},
	{"console"}, // a page about what the process does; no other room needs it
	{"nethttp", "ginlimit", "echolimit", "fiberlimit", "internal/gatefiber/fibertest", "internal/gatehttp/echotest"},
	{"examples", "internal"}, // no library package imports these
}

// forbidden says what a package and the packages under it must not compile.
var forbidden = map[string][]string{
	"lua":                         {gin, echo, fiber, fasthttp, miniredis, "net/http", "testing"},
	"core":                        {gin, echo, fiber, fasthttp, miniredis},
	"core/script":                 {"net/http", "testing"},
	"core/internal":               {"net/http", "testing"},
	"core/store":                  {"net/http", "testing"},
	"core/limit":                  {"net/http", "testing"},
	"core/limit/internal/kind":    {goredis, "context"},
	"core/limit/internal/cells":   {goredis, "context"},
	"core/limit/internal/denials": {goredis, "context"},
	"core/inflight":               {"net/http", "testing"},
	"core/lock":                   {"net/http", "testing"},
	"core/idempotency":            {"net/http", "testing"},
	"core/stock":                  {"net/http", "testing"},
	"core/outgoing":               {"net/http", "testing"},
	"core/gate/adapter":           {"testing"},
	"internal/gatehttp":           {gin, echo, fiber, fasthttp, miniredis, "testing"},
	"internal/gatefiber":          {gin, echo, fiber, miniredis, "testing"},
	"contrib":                     {gin, echo, fiber, fasthttp, miniredis, "net/http", "testing"},
	"console":                     {gin, echo, fiber, fasthttp, miniredis, "testing", module + "/core/gate"},
	"neaptest":                    {gin, echo, fiber, fasthttp},
	"nethttp":                     {gin, echo, fiber, fasthttp, miniredis, "testing"},
	"ginlimit":                    {echo, fiber, fasthttp, miniredis, "testing"},
	"echolimit":                   {gin, fiber, fasthttp, miniredis, "testing"},
	"fiberlimit":                  {gin, echo, miniredis},
}

// permitted is what a package may compile although one above it must not.
var permitted = map[string][]string{
	"core/script/scripttest":       {miniredis, "testing"},
	"internal/gatefiber/fibertest": {miniredis, "testing"},
	"internal/gatehttp/echotest":   {miniredis, "testing"},
}

type pkg struct {
	path    string   // within the module
	imports []string // within the module, without those of its tests
	deps    []string // whatever it compiles
}

func packages(t *testing.T) []pkg {
	t.Helper()
	touch(t)
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}}|{{join .Imports " "}}|{{join .Deps " "}}`, "./...")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for line := range strings.Lines(string(out)) {
		part := strings.Split(strings.TrimSpace(line), "|")
		p := pkg{path: inModule(part[0]), deps: strings.Fields(part[2])}
		for i := range strings.FieldsSeq(part[1]) {
			if under(i, module) {
				p.imports = append(p.imports, inModule(i))
			}
		}
		all = append(all, p)
	}
	return all
}

// touch looks at every Go file, so that go test runs this test again when one
// has changed: of what go list reads it knows nothing.
func touch(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".go" {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func inModule(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}

// under says whether path is dir or below it; a major version is below.
func under(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}

// room is the layer of a package and its room there.
func room(path string) (layer int, name string) {
	layer = -1
	for i, rooms := range layers {
		for _, r := range rooms {
			if under(path, r) && (layer < 0 || len(r) > len(name)) {
				layer, name = i, r
			}
		}
	}
	return layer, name
}

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, p := range packages(t) {
		if p.path == rootPackage && len(p.deps) > 0 {
			t.Errorf("the root package compiles %d packages, want it to be documentation and to import nothing", len(p.deps))
		}
		layer, own := room(p.path)
		found[own] = true
		if layer < 0 {
			t.Errorf("%s is in no layer, want one", p.path)
		}
		for _, i := range p.imports {
			if l, r := room(i); l >= layer && r != own {
				t.Errorf("%s imports %s, which does not lie below it", p.path, i)
			}
		}
	}
	for _, want := range slices.Concat(layers...) {
		if !found[want] {
			t.Errorf("there is no package in %q, want one", want)
		}
	}
}

func TestPackagesCompileOnlyTheirOwnFramework(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		for dir, banned := range forbidden {
			if !under(p.path, dir) {
				continue
			}
			for _, b := range banned {
				if slices.Contains(permitted[p.path], b) {
					continue
				}
				if i := slices.IndexFunc(p.deps, func(d string) bool {
					return d == b || strings.Contains(b, ".") && under(d, b)
				}); i >= 0 {
					t.Errorf("%s compiles %s, want it to compile without", p.path, p.deps[i])
				}
			}
		}
	}
}
