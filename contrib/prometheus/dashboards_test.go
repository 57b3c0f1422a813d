package prometheus_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	neapprometheus "github.com/neap-go/neap/contrib/prometheus"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/dashboards"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

const (
	dashboardFile = "../dashboards/neap.json"
	rulesFile     = "../dashboards/neap.rules.yml"
	pageFile      = "../../docs/observe.md"
)

// alert is a rule of rulesFile.
type alert struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations struct{ Summary, Description string }
}

func alerts(t *testing.T) (all []alert) {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []alert } }
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	if err := decoder.Decode(&file); err != nil {
		t.Fatalf("%s: %v", rulesFile, err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 7 {
		t.Fatalf("%s has %d alerts, want 7 at least", rulesFile, len(all))
	}
	return all
}

func dashboard(t *testing.T) *dashboards.Dashboard {
	t.Helper()
	d, err := dashboards.Read(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Panels) < 10 {
		t.Fatalf("%s has %d panels, want 10 at least", dashboardFile, len(d.Panels))
	}
	return d
}

// exposedLabels are the labels of each metric, as the collector describes them.
func exposedLabels(t *testing.T) map[string][]string {
	t.Helper()
	c, err := neapprometheus.New(storetest.Open(t, redistest.Embedded(), store.Options{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		c.Describe(descs)
	}()
	all := map[string][]string{}
	for d := range descs {
		m := described.FindStringSubmatch(d.String())
		if m == nil {
			t.Errorf("%s: got no name and labels", d)
			continue
		}
		all[m[1]] = strings.Split(m[2], ",")
	}
	return all
}

var described = regexp.MustCompile(`^Desc\{fqName: "([a-z_]+)",.* variableLabels: \{([a-z_,]+)\}\}$`)

// What PromQL has between names. These expressions have no string with a brace or a parenthesis in it.
var (
	named    = regexp.MustCompile(`\bneap_[a-z_]+`)
	matched  = regexp.MustCompile(`\b([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`)
	grouped  = regexp.MustCompile(`\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	shown    = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?([a-z_]+)\s*\}\}`)
	repeated = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// asked are the metrics of an expression, the labels that it names, and those that its result has.
func asked(expr string) (metrics, labels, result []string) {
	metrics = named.FindAllString(expr, -1)
	for _, m := range matched.FindAllStringSubmatch(expr, -1) {
		labels = append(labels, m[1])
	}
	for _, m := range grouped.FindAllStringSubmatch(expr, -1) {
		for label := range strings.FieldsFuncSeq(m[2], func(r rune) bool { return r == ',' || r == ' ' }) {
			labels = append(labels, label)
			if m[1] == "by" {
				result = append(result, label)
			}
		}
	}
	return metrics, labels, result
}

// wrong is what an expression asks for that no collector exposes. text has labels of the result in braces.
func wrong(exposed map[string][]string, expr, text string) (all []string) {
	metrics, labels, result := asked(expr)
	known := []string{"job", "instance"} // which Prometheus adds
	for _, m := range metrics {
		of, is := exposed[m]
		if !is {
			of, is = exposed[repeated.ReplaceAllString(m, "")]
			known = append(known, "le")
		}
		if !is {
			all = append(all, "the metric "+m)
		}
		known = append(known, of...)
	}
	for _, label := range labels {
		if !slices.Contains(known, label) {
			all = append(all, "the label "+label)
		}
	}
	for _, m := range shown.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(result, m[1]) {
			all = append(all, "the label "+m[1]+" in its text")
		}
	}
	if len(metrics) == 0 || len(result) == 0 {
		all = append(all, "nothing: it has no metric, or groups by no label")
	}
	return all
}

// TestTheDashboardAndTheAlertsAskForWhatIsExposed: each metric and label is one of the collector's, and the dashboard shows each metric.
func TestTheDashboardAndTheAlertsAskForWhatIsExposed(t *testing.T) {
	t.Parallel()
	exposed := exposedLabels(t)
	var shows strings.Builder
	for _, p := range dashboard(t).Panels {
		for _, q := range p.Targets {
			shows.WriteString(q.Expr + "\n")
			for _, what := range wrong(exposed, q.Expr, q.LegendFormat) {
				t.Errorf("the panel %q asks for %s, which is not exposed: %s", p.Title, what, q.Expr)
			}
		}
	}
	for _, a := range alerts(t) {
		text := strings.ReplaceAll(a.Annotations.Summary+a.Annotations.Description, "{{ $value", "")
		for _, what := range wrong(exposed, a.Expr, text) {
			t.Errorf("the alert %s asks for %s, which is not exposed: %s", a.Alert, what, a.Expr)
		}
	}
	for metric := range exposed {
		if !regexp.MustCompile(`\b` + metric + `(_bucket)?\{`).MatchString(shows.String()) {
			t.Errorf("no panel shows %s", metric)
		}
	}
}

// TestWhatIsNotExposedIsFound breaks expressions.
func TestWhatIsNotExposedIsFound(t *testing.T) {
	t.Parallel()
	exposed := exposedLabels(t)
	for expr, want := range map[string]string{
		`sum by (name) (rate(neap_decisions_total{outcome="denied"}[5m]))`:                   "",
		`sum by (name, le) (rate(neap_decision_duration_seconds_bucket[5m]))`:                "",
		`sum by (name) (rate(neap_decision_total[5m]))`:                                      "the metric neap_decision_total",
		`sum by (name) (rate(neap_decisions_total{result="denied"}[5m]))`:                    "the label result",
		`sum by (subject) (rate(neap_decisions_total[5m]))`:                                  "the label subject",
		`sum by (server) (neap_redis_up) * on (key) group_left sum by (job) (neap_redis_up)`: "the label key",
		`sum by (job) (neap_redis_up)`:                                                       "the label name in its text",
		`sum(neap_redis_up)`:                                                                 "nothing",
	} {
		got := strings.Join(wrong(exposed, expr, map[bool]string{true: "{{name}}"}[strings.HasPrefix(expr, "sum by (job)")]), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", expr, got, want)
		}
	}
}

// TestTheDashboardIsForAnyGrafana: it asks the datasource that its reader chooses, and needs no plugin.
func TestTheDashboardIsForAnyGrafana(t *testing.T) {
	t.Parallel()
	d := dashboard(t)
	if d.SchemaVersion < 38 {
		t.Errorf("got the schema %d, want that of Grafana 10, 38, or a later one", d.SchemaVersion)
	}
	variables := map[string]string{}
	for _, v := range d.Templating.List {
		variables[v.Name] = v.Type
	}
	if variables["datasource"] != "datasource" || variables["job"] != "query" {
		t.Errorf("got the variables %v, want a datasource and a job", variables)
	}
	own := dashboards.Datasource{Type: "prometheus", UID: "${datasource}"}
	page := read(t, pageFile)
	for _, p := range d.Panels {
		if p.Type != "timeseries" || p.Datasource != own || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("the panel %q: got %+v, want a timeseries of the variable's datasource with a description", p.Title, p)
		}
		if !strings.Contains(page, "\n**"+p.Title+".** ") {
			t.Errorf("%s has no paragraph that begins with %s", pageFile, p.Title)
		}
		for _, q := range p.Targets {
			seconds := strings.Contains(q.Expr, "_seconds_bucket")
			if q.Datasource != own || seconds != (p.FieldConfig.Defaults.Unit == "s") {
				t.Errorf("the panel %q: got the datasource %v and the unit %q, want the variable's, and s for seconds alone", p.Title, q.Datasource, p.FieldConfig.Defaults.Unit)
			}
			if !strings.Contains(q.Expr, `job=~"$job"`) {
				t.Errorf("the panel %q does not ask by the variable job: %s", p.Title, q.Expr)
			}
		}
	}
}

// TestEachAlertSaysWhatToDo, and where to read on.
func TestEachAlertSaysWhatToDo(t *testing.T) {
	t.Parallel()
	page := read(t, pageFile)
	for _, a := range alerts(t) {
		if a.Annotations.Summary == "" || !strings.HasSuffix(a.Annotations.Description, " See docs/observe.md, "+a.Alert+".") {
			t.Errorf("%s: got the summary %q and the description %q, want both, and the heading in the page", a.Alert, a.Annotations.Summary, a.Annotations.Description)
		}
		if !strings.Contains(page, "\n### "+a.Alert+"\n") {
			t.Errorf("%s has no heading %s", pageFile, a.Alert)
		}
		if severity := a.Labels["severity"]; severity != "warning" && severity != "critical" {
			t.Errorf("%s: got the severity %q, want warning or critical", a.Alert, severity)
		}
	}
}

// TestThePageHasEachMetric in its table.
func TestThePageHasEachMetric(t *testing.T) {
	t.Parallel()
	page := read(t, pageFile)
	for metric, labels := range exposedLabels(t) {
		if line := "\n| `" + metric + "` | " + strings.Join(labels, ", ") + " | "; !strings.Contains(page, line) {
			t.Errorf("%s has no line that begins so:%s", pageFile, line)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
