package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// server is a Prometheus.
type server struct {
	*testing.T

	url string
}

// startPrometheus starts one that scrapes a target each second, and evaluates rules as often.
func startPrometheus(t *testing.T, target, rules string) server {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"neap.rules.yml": rules,
		"prometheus.yml": `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [neap.rules.yml]
scrape_configs: [{job_name: shop, static_configs: [{targets: ["` + target + `"]}]}]
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	addr := redistest.StartProgram(t, func(addr string) *exec.Cmd {
		return exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"),
			"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)
	}, func(addr string) bool {
		response, err := http.Get("http://" + addr + "/-/ready")
		if err == nil {
			response.Body.Close()
		}
		return err == nil && response.StatusCode == http.StatusOK
	})
	return server{t, "http://" + addr}
}

// series is one of an answer: its labels, and a value for each second that has one.
type series struct {
	Metric map[string]string
	Value  point
	Values []point
}

type point struct{ value float64 }

// UnmarshalJSON reads [seconds, "value"].
func (p *point) UnmarshalJSON(text []byte) error {
	var value string
	if err := json.Unmarshal(text, &[]any{new(float64), &value}); err != nil {
		return err
	}
	var err error
	p.value, err = strconv.ParseFloat(value, 64)
	return err
}

func (s server) api(path string, form url.Values) (all []series) {
	s.Helper()
	response, err := http.PostForm(s.url+"/api/v1/"+path, form)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []series }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		s.Fatal(err)
	}
	if answer.Status != "success" {
		s.Fatalf("%s: Prometheus answers %s: %s", form.Get("query"), answer.Status, answer.Error)
	}
	return answer.Data.Result
}

// now is what an expression is at the moment.
func (s server) now(expr string) []series {
	s.Helper()
	return s.api("query", url.Values{"query": {expr}})
}

// over is what an expression was each second of a time.
func (s server) over(expr string, from, to time.Time) []series {
	s.Helper()
	return s.api("query_range", url.Values{
		"query": {expr}, "start": {from.UTC().Format(time.RFC3339Nano)}, "end": {to.UTC().Format(time.RFC3339Nano)}, "step": {"1"},
	})
}

// fired are the alerts that have fired so far.
func (s server) fired() []string {
	s.Helper()
	return s.alerts(`max_over_time(ALERTS{alertstate="firing"}[1h])`)
}

// firing are those that fire.
func (s server) firing() []string {
	s.Helper()
	return s.alerts(`ALERTS{alertstate="firing"}`)
}

func (s server) alerts(expr string) []string {
	s.Helper()
	var all []string
	for _, one := range s.now("group by (alertname) (" + expr + ")") {
		all = append(all, one.Metric["alertname"])
	}
	slices.Sort(all)
	return all
}
