//go:build neap_upgrade

package upgrade

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/neap-go/neap/internal/redistest"
)

const root = "../.."

func TestMain(m *testing.M) { redistest.Main(m, removeBuilds) }

// The versions of the library that workers are built with.
const (
	baseline  = "baseline"
	tree      = "tree"
	mutant    = "mutant"    // the baseline with the mutations of control_test.go
	rewritten = "rewritten" // the baseline with the contents there
)

// builds is the directory of this process for sources and workers.
var builds = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "neap-upgrade-") })

// workers build the worker of each version once.
var workers = map[string]func() (string, error){
	tree:      sync.OnceValues(func() (string, error) { return compile(tree, root) }),
	baseline:  sync.OnceValues(func() (string, error) { return compileBaseline(baseline, nil) }),
	mutant:    sync.OnceValues(func() (string, error) { return compileBaseline(mutant, mutations) }),
	rewritten: sync.OnceValues(func() (string, error) { return compileBaseline(rewritten, contents) }),
}

func removeBuilds() {
	if dir, err := builds(); err == nil {
		_ = os.RemoveAll(dir)
	}
}

// baselineName is the commit or the tag that the baseline is.
func baselineName() (string, error) {
	if name := os.Getenv("NEAP_BASELINE"); name != "" {
		return name, nil
	}
	text, err := os.ReadFile("BASELINE")
	return strings.TrimSpace(string(text)), err
}

// errNoBaseline says what to do about a checkout without the baseline.
func errNoBaseline(name string) error {
	return fmt.Errorf("this checkout does not have the baseline %s, which internal/upgrade/BASELINE or NEAP_BASELINE names: "+
		"run git fetch --unshallow --tags (or git fetch --tags, if the clone is not shallow), and in a workflow check out with fetch-depth: 0", name)
}

// git is a command of git about this checkout, which another user may own.
func git(words ...string) *exec.Cmd {
	return exec.Command("git", append([]string{"-c", "safe.directory=*", "-C", root}, words...)...)
}

// compileBaseline builds the worker with the library of the baseline, with changes.
func compileBaseline(as string, changes []mutation) (string, error) {
	name, err := baselineName()
	if err != nil {
		return "", err
	}
	if out, err := git("rev-parse", "--verify", "--quiet", name+"^{commit}").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\ngit: %w %s", errNoBaseline(name), err, out)
	}
	dir, err := builds()
	if err != nil {
		return "", err
	}
	src := filepath.Join(dir, as+"-source")
	if err := extract(name, src); err != nil {
		return "", err
	}
	for _, m := range changes {
		if err := m.apply(src); err != nil {
			return "", err
		}
	}
	own := filepath.Join(src, "internal/upgrade")
	kept := own + "-of-the-baseline"
	had := os.Rename(own, kept) == nil
	if err := copySource(".", own); err != nil {
		return "", err
	}
	path, err := compile(as, src)
	if err == nil || !had {
		return path, err
	}
	// The tree's worker uses what the baseline does not have yet: the baseline's own
	// worker knows what was there, in the words that the tree's wire still has.
	if err := errors.Join(os.RemoveAll(own), os.Rename(kept, own)); err != nil {
		return "", err
	}
	path, again := compile(as, src)
	if again != nil {
		return "", errors.Join(err, again)
	}
	return path, nil
}

// extract writes the files of a commit.
func extract(name, into string) error {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	archive := git("archive", "--format=tar", name)
	tar := exec.Command("tar", "-x", "-C", into)
	var ofArchive, ofTar bytes.Buffer // a goroutine of its own writes to each
	archive.Stderr, tar.Stderr = &ofArchive, &ofTar
	pipe, err := archive.StdoutPipe()
	if err != nil {
		return err
	}
	tar.Stdin = pipe
	if err := errors.Join(archive.Start(), tar.Run(), archive.Wait()); err != nil {
		return fmt.Errorf("git archive %s: %w\n%s", name, err, append(ofArchive.Bytes(), ofTar.Bytes()...))
	}
	return nil
}

// copySource copies the packages of the worker and not the test.
func copySource(from, into string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		target := filepath.Join(into, path)
		return errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.WriteFile(target, text, 0o600))
	})
}

// compile builds the worker of a source tree. With -trimpath the build cache serves the
// same source in another directory.
func compile(as, source string) (string, error) {
	dir, err := builds()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, as)
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", path, "./internal/upgrade/worker")
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the worker of the %s: %w\n%s", as, err, out)
	}
	return path, nil
}

// mutation is a change of the library's source, in every file that matches.
type mutation struct {
	files    string // a pattern of path.Match
	old, new string // old is a regular expression
}

func (m mutation) apply(source string) error {
	files, err := filepath.Glob(filepath.Join(source, m.files))
	if err != nil {
		return err
	}
	old, changed := regexp.MustCompile(m.old), 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if now := old.ReplaceAll(text, []byte(m.new)); !bytes.Equal(now, text) {
			changed++
			if err := os.WriteFile(file, now, 0o600); err != nil {
				return err
			}
		}
	}
	if changed == 0 {
		return fmt.Errorf("the mutation %q finds nothing in %s of the baseline: adapt it to that source", m.old, m.files)
	}
	return nil
}

// TestAShallowCheckoutIsToldTheRemedy looks for a baseline that is not there.
func TestAShallowCheckoutIsToldTheRemedy(t *testing.T) {
	t.Setenv("NEAP_BASELINE", "v99.99.99")
	_, err := compileBaseline("none", nil)
	if err == nil || !strings.Contains(err.Error(), "git fetch --unshallow --tags") {
		t.Errorf("a baseline that is not there: got the error %v, want one that names git fetch --unshallow --tags", err)
	}
}
