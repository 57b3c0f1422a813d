package guide

import (
	"strconv"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/script"
)

func TestAValueInTheText(t *testing.T) {
	t.Parallel()
	pitfall[int]{
		asks: "scripts that the server keeps after a hundred calls",
		usual: func(s scene) int {
			for visits := range 100 {
				s.must(VisitBySprintf(s.Context(), s.rdb, s.key, visits))
			}
			return s.scripts()
		},
		breaks: 100,
		neap: func(s scene) int {
			runner := s.runner()
			for visits := range 100 {
				_, err := Visit(s.Context(), runner, s.key, visits)
				s.must(err)
			}
			return s.scripts()
		},
		holds: 1,
	}.alone(t)
}

func TestAServerForgets(t *testing.T) {
	t.Parallel()
	pitfall[string]{
		asks: "the error after SCRIPT FLUSH, as after a restart or a failover",
		usual: func(s scene) string {
			sha, err := s.rdb.ScriptLoad(s.Context(), countLua).Result()
			s.must(err)
			s.must(s.admin.ScriptFlush(s.Context()).Err())
			return said(VisitBySHA(s.Context(), s.rdb, sha, s.key, 1))
		},
		breaks: "NOSCRIPT No matching script. Please use EVAL.",
		neap: func(s scene) string {
			runner := s.runner()
			s.must(runner.Load(s.Context(), count))
			s.must(s.admin.ScriptFlush(s.Context()).Err())
			_, err := Visit(s.Context(), runner, s.key, 1)
			return said(err)
		},
		holds: "",
	}.alone(t)
}

func (s scene) runner() *script.Runner {
	s.Helper()
	runner, err := script.NewRunner(s.rdb, &script.Options{Budget: patience})
	s.must(err)
	return runner
}

// scripts returns how many scripts the server keeps, and then flushes them.
func (s scene) scripts() int {
	s.Helper()
	info := s.admin.Info(s.Context(), "memory").Val()
	_, rest, _ := strings.Cut(info, "number_of_cached_scripts:")
	line, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.Atoi(line)
	s.must(err)
	s.must(s.admin.ScriptFlush(s.Context()).Err())
	return n
}
