package upgrade

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestThePageNamesWhatIsTested holds docs/compatibility.md to go.mod and to the servers that
// scripts/servers.sh runs.
func TestThePageNamesWhatIsTested(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/compatibility.md")
	oldest := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))
	if oldest == nil || !strings.Contains(page, "`go.mod` says "+oldest[1]+" |") {
		t.Errorf("docs/compatibility.md does not say that go.mod says %v", oldest)
	}
	wanted := regexp.MustCompile(`(?m)^wanted='(.+)'$`).FindStringSubmatch(read(t, "scripts/servers.sh"))
	if wanted == nil {
		t.Fatal("scripts/servers.sh names no servers")
	}
	rows := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (Redis|Valkey) \| ([0-9., ]+) \|`).FindAllStringSubmatch(page, -1) {
		rows[strings.ToLower(row[1])] = row[2]
	}
	var named int
	for server := range strings.FieldsSeq(wanted[1]) {
		kind, version, _ := strings.Cut(server, "-")
		if server == "redis-6.2" { // no suite has it, as the page says
			continue
		}
		named++
		if !regexp.MustCompile(`(^|[ ,])` + regexp.QuoteMeta(version) + `($|[ ,])`).MatchString(rows[kind]) {
			t.Errorf("docs/compatibility.md names %s %q, want %s among them", kind, rows[kind], version)
		}
	}
	if got := len(regexp.MustCompile(`\d+\.\d+`).FindAllString(rows["redis"]+" "+rows["valkey"], -1)); got != named {
		t.Errorf("docs/compatibility.md names %d servers, want the %d of scripts/servers.sh", got, named)
	}
}

// TestTheBaselineIsNamed: a commit in full, or the tag of a release.
func TestTheBaselineIsNamed(t *testing.T) {
	t.Parallel()
	if name := strings.TrimSpace(read(t, "internal/upgrade/BASELINE")); !regexp.MustCompile(`^([0-9a-f]{40}|v\d+\.\d+\.\d+)$`).MatchString(name) {
		t.Errorf("internal/upgrade/BASELINE is %q, want a commit in full or a tag such as v0.1.0", name)
	}
	if !regexp.MustCompile(`(?m)^\t.* soak .*\bupgrade\b`).MatchString(read(t, "Makefile")) {
		t.Error("make nightly does not run make upgrade, want it among its targets")
	}
}
