package scripttest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// recorder is a testing.TB that stores what a test would fail with.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	said   []string
	logged []string
}

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func (r *recorder) Log(args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logged = append(r.logged, fmt.Sprint(args...))
}

// said returns what Run fails a test with.
func said(t *testing.T, s *script.Script, calls ...Call) []string {
	t.Helper()
	r := &recorder{TB: t}
	Run(r, s, calls...)
	return r.said
}

// on returns the lines about one server.
func on(server string, lines []string) (about []string) {
	for _, line := range lines {
		if strings.HasSuffix(line, ", "+server+")") {
			about = append(about, line)
		}
	}
	return about
}
