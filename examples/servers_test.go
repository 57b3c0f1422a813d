package examples_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestTheREADMEClaimsWhatServersRuns holds the versions in the README, in the recipes
// and in their translations to those that `make servers` asks for. No Debian has Redis
// 6.2, so the pages must say that it was not tested.
func TestTheREADMEClaimsWhatServersRuns(t *testing.T) {
	t.Parallel()
	const untested = "redis-6.2"
	wanted := regexp.MustCompile(`(?m)^wanted='(.*)'$`).FindStringSubmatch(read(t, "../scripts/servers.sh"))
	if wanted == nil {
		t.Fatal("scripts/servers.sh has no line wanted='…'")
	}
	versions, found := map[string][]string{}, false
	for name := range strings.FieldsSeq(wanted[1]) {
		if name == untested {
			found = true
			continue
		}
		server, version, _ := strings.Cut(name, "-")
		versions[server] = append(versions[server], version)
	}
	if !found || len(versions["redis"]) < 2 || len(versions["valkey"]) < 3 {
		t.Fatalf("make servers asks for %q, want %s, two versions of Redis and three of Valkey", wanted[1], untested)
	}
	english := func(all []string) string {
		last := len(all) - 1
		return strings.Join(all[:last], ", ") + " and " + all[last]
	}
	chinese := func(all []string) string { return strings.Join(all, "、") }
	inEnglish := []string{
		fmt.Sprintf("on Redis %s and on Valkey %s", english(versions["redis"]), english(versions["valkey"])),
		"Redis 6.2 was not tested",
	}
	inChinese := []string{
		fmt.Sprintf("在 Redis %s 和 Valkey %s 上", chinese(versions["redis"]), chinese(versions["valkey"])), //nolint:gosmopolitan // those pages are Chinese
		"Redis 6.2 没有测试过", //nolint:gosmopolitan // as above
	}
	for name, sentences := range map[string][]string{
		"../README.md": inEnglish, "../docs/recipes.md": inEnglish,
		"../README.zh-CN.md": inChinese, "../docs/recipes.zh-CN.md": inChinese,
	} {
		text := strings.Join(strings.Fields(read(t, name)), " ")
		for _, sentence := range sentences {
			if !strings.Contains(text, sentence) {
				t.Errorf("%s does not say %q", name, sentence)
			}
		}
	}
}
