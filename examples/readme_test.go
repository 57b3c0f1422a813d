package examples_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPagesAreTrue finds every Go block of the README, of the recipes, and of the
// pages for operators, about locks, idempotency, stock, neighbours, callbacks,
// scripts and other libraries, line by line, in a file that compiles.
func TestPagesAreTrue(t *testing.T) {
	t.Parallel()
	examples := compiled(t, ".")
	for page, least := range map[string]int{"README.md": 1, "docs/recipes.md": 30, "docs/operations.md": 2, "docs/locks.md": 1, "docs/idempotency.md": 9, "docs/own-scripts.md": 5, "docs/stock.md": 3, "docs/console.md": 2, "docs/neighbours.md": 7, "docs/adapters.md": 6,
		"docs/callbacks/README.md": 5, "docs/callbacks/alipay.md": 2, "docs/callbacks/wechatpay.md": 2, "docs/callbacks/adyen.md": 3,
		"docs/callbacks/paypal.md": 2, "docs/callbacks/square.md": 1,
		"docs/coming-from/README.md": 1, "docs/coming-from/redis_rate.md": 2, "docs/coming-from/ulule-limiter.md": 1, "docs/coming-from/tollbooth.md": 1, "docs/coming-from/httprate.md": 1,
		"docs/coming-from/redsync.md": 2, "docs/coming-from/redislock.md": 2, "docs/coming-from/setnx.md": 2, "docs/coming-from/fiber-idempotency.md": 2} {
		text := read(t, "../"+page)
		if strings.Contains(text, "@@") {
			t.Errorf("%s has a placeholder, want none", page)
		}
		code := examples
		if page == "docs/adapters.md" { // it shows how an adapter was written
			code = compiled(t, "../hertzlimit")
		}
		blocks := goBlocks(text)
		if len(blocks) < least {
			t.Errorf("%s has %d blocks of Go, want %d at least", page, len(blocks), least)
		}
		for _, block := range blocks {
			if !strings.Contains(code, block) {
				t.Errorf("this block of %s stands in no file that compiles:\n%s", page, block)
			}
		}
	}
}

// TestProblemTypesLeadSomewhere has each type of core/gate lead to its section.
func TestProblemTypesLeadSomewhere(t *testing.T) {
	t.Parallel()
	code := read(t, "../core/gate/kind.go")
	for name, least := range map[string]int{"TypeIdempotency": 7, "TypeStock": 5} {
		begins := regexp.MustCompile(name + ` += "[^"]*/(docs/[a-z]+\.md)#"`).FindStringSubmatch(code)
		types := regexp.MustCompile(name+` \+ "([^"]+)"`).FindAllStringSubmatch(code, -1)
		if begins == nil || len(types) < least {
			t.Fatalf("%s: got the page %q and %d types, want a page and %d types at least",
				name, begins, len(types), least)
		}
		page := read(t, "../"+begins[1])
		for _, m := range types {
			if n := strings.Count(page, "\n### "+m[1]+"\n"); n != 1 {
				t.Errorf("%s has %d sections %s, want one", begins[1], n, m[1])
			}
		}
	}
}

func TestBlocksAreTold(t *testing.T) {
	t.Parallel()
	text := "a\n```go\nx := 1\n\tif y {\n```\nb\n```sh\nls\n```\n"
	if got := goBlocks(text); len(got) != 1 || got[0] != "\nx := 1\nif y {\n" {
		t.Errorf("got the blocks %q, want the one of Go", got)
	}
	if strings.Contains(flat("package p\n\nx := 2\n"), goBlocks(text)[0]) {
		t.Error("a block that differs is found, want it not found")
	}
}

var block = regexp.MustCompile("(?s)```go\n(.*?)```")

func goBlocks(markdown string) (blocks []string) {
	for _, m := range block.FindAllStringSubmatch(markdown, -1) {
		blocks = append(blocks, flat(m[1]))
	}
	return blocks
}

// compiled is every Go file under root. Those that end in _test.go compile
// too, but are shown as tests only: of this package none is.
func compiled(t *testing.T, root string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || filepath.Dir(path) == "." {
			return err
		}
		text, err := os.ReadFile(path)
		all.WriteString(flat(string(text)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// flat takes the indentation off, which differs between a file and an excerpt,
// and more so in a list.
func flat(code string) string {
	var b strings.Builder
	b.WriteByte('\n')
	for line := range strings.Lines(code) {
		b.WriteString(strings.TrimLeft(line, "\t "))
	}
	return b.String()
}
