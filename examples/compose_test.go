package examples_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestComposeNamesWhatThereIs: what is mounted is in the checkout, and each service asks for another by the name and the
// port that it has.
func TestComposeNamesWhatThereIs(t *testing.T) {
	t.Parallel()
	const dir = "compose"
	compose := read(t, filepath.Join(dir, "compose.yaml"))
	mounts := regexp.MustCompile(`(?:- |")(\.\.?/[^:"]*):/`).FindAllStringSubmatch(compose, -1)
	if len(mounts) < 7 {
		t.Errorf("got %d mounts, want those of each service", len(mounts))
	}
	for _, m := range mounts {
		if _, err := os.Stat(filepath.Join(dir, m[1])); err != nil {
			t.Errorf("compose.yaml mounts %s: %v", m[1], err)
		}
	}
	for _, m := range regexp.MustCompile(`go, run, (\S+),`).FindAllStringSubmatch(compose, -1) {
		if m[1] != "." {
			read(t, filepath.Join("..", m[1], "main.go"))
		}
	}
	asked := compose + read(t, filepath.Join(dir, "prometheus.yml")) + read(t, filepath.Join(dir, "grafana/datasource.yml"))
	for service, port := range map[string]string{"redis": "6379", "service": "8080", "prometheus": "9090"} {
		if !strings.Contains(asked, service+":"+port) || !strings.Contains(compose, "\n  "+service+":\n") || !strings.Contains(compose, ":"+port+`"]`) {
			t.Errorf("got no service %s that is asked on port %s, want one", service, port)
		}
	}
	if image := read(t, "../cmd/neap/Dockerfile"); !strings.Contains(image, "FROM golang:"+goVersion(t)) || strings.Count(compose, "golang:"+goVersion(t)) != 2 {
		t.Errorf("want images of Go %s, which go.mod asks for", goVersion(t))
	}
}

func goVersion(t *testing.T) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))
	if m == nil {
		t.Fatal("go.mod names no version of Go")
	}
	return m[1]
}
