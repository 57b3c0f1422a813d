package examples_test

import (
	"path/filepath"
	"strings"
	"testing"
)

const neighboursPage = "../docs/neighbours.md"

// TestNeighboursAreTrue finds each block of configuration of the page in a file of
// examples/neighbours, and each recipe of that module on the page.
func TestNeighboursAreTrue(t *testing.T) {
	t.Parallel()
	text := read(t, neighboursPage)
	var configured strings.Builder
	recipes := 0
	files, err := filepath.Glob("neighbours/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		switch filepath.Ext(file) {
		case ".conf", ".yml", ".js":
			configured.WriteString(flat(read(t, file)))
		case ".go":
			name := filepath.Base(file)
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			if recipes++; !strings.Contains(text, "(../examples/neighbours/"+name+")") {
				t.Errorf("%s does not lead to %s", neighboursPage, file)
			}
		}
	}
	blocks := 0
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		if m[1] == "go" { // TestPagesAreTrue finds those
			continue
		}
		if blocks++; !strings.Contains(configured.String(), flat(m[2])) {
			t.Errorf("this block of %s stands in no .conf, .yml or .js of examples/neighbours:\n%s", neighboursPage, m[2])
		}
	}
	if recipes < 8 || blocks < 3 {
		t.Errorf("got %d recipes and %d blocks of configuration, want 8 and 3 at least", recipes, blocks)
	}
}
