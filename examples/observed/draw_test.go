package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/neap-go/neap/internal/dashboards"
	"github.com/neap-go/neap/internal/svg"
)

// row is a panel in the picture: what its series add up to, or the largest of them, and the alert about it.
type row struct {
	panel, legend, unit, alert string
	largest                    bool
}

var rows = []row{
	{"Redis answers", "{{server}}", "", "NeapRedisLost", true},
	{"Calls held back", "{{server}}", "", "NeapBreakerOpen", true},
	{"Decided without Redis", "{{primitive}} {{name}}", "/s", "NeapDegraded", false},
	{"Not decided", "{{primitive}} {{name}}", "/s", "NeapFailed", false},
	{"Denied by policy", "{{name}} {{policy}}", "%", "NeapDenied", true},
	{"How long a decision takes", "{{name}} p99", "s", "NeapSlow", true},
	{"Locks lost", "{{name}}", "", "NeapLocksLost", false},
	{"Runs in doubt", "{{name}} ended", "", "NeapInDoubt", false},
	{"Stock that disagrees", "{{name}}", "", "NeapStockDisagrees", false},
}

var scales = map[string]float64{"": 1, "/s": 1, "%": 100, "s": 1}

// sheet is the picture of a run.
type sheet struct {
	*svg.Drawing

	at course
}

const left, right, first, step, high = 240.0, 704.0, 104.0, 58.0, 34.0

func (s sheet) x(t time.Time) float64 {
	return left + (right-left)*max(0, min(1, t.Sub(s.at.calm).Seconds()/s.at.end.Sub(s.at.calm).Seconds()))
}

// picture draws the panels of a run below one another.
func picture(p server, at course) string {
	const title = "What the dashboard shows of an outage"
	d, err := dashboards.Read(dashboardFile)
	if err != nil {
		p.Fatal(err)
	}
	bottom := first + step*float64(len(rows)-1)
	desc := "A service is calm, then under load, then without Redis, and then with it again. Below each panel a line says when its alert fires."
	s := sheet{svg.New(720, bottom+50, title, desc), at}
	s.Text(16, 30, svg.Title, title)
	for _, part := range []struct {
		name     string
		from, to time.Time
	}{{"calm", at.calm, at.load}, {"load", at.load, at.away}, {"no Redis", at.away, at.back}, {"back", at.back, at.end}} {
		s.Text((s.x(part.from)+s.x(part.to))/2, 62, svg.Small+" middle", part.name)
		s.Line("edge", svg.At(s.x(part.to), 50), svg.At(s.x(part.to), bottom))
	}
	for i, r := range rows {
		s.row(p, d, r, first+step*float64(i))
	}
	s.Line("no", svg.At(left, bottom+29), svg.At(left+24, bottom+29))
	s.Text(left+32, bottom+34, svg.Small, "its alert fires")
	s.Text(right, bottom+34, svg.Small+" end", fmt.Sprintf("%.0f s", at.end.Sub(at.calm).Seconds()))
	return s.String()
}

// row draws a panel whose zero is at y.
func (s sheet) row(p server, d *dashboards.Dashboard, r row, y float64) {
	points := s.points(p, d, r)
	most := 0.0
	for _, v := range points {
		most = max(most, v.value)
	}
	s.Text(16, y-16, svg.Plain, r.panel)
	s.Text(left-8, y-high+9, svg.Small+" end", fmt.Sprintf("%.3g %s", most, r.unit))
	s.Line("axis", svg.At(left, y), svg.At(right, y))
	if most > 0 {
		var path strings.Builder
		fmt.Fprintf(&path, "M%s", svg.At(s.x(points[0].at), y))
		for _, v := range points {
			fmt.Fprintf(&path, "L%s", svg.At(s.x(v.at), y-high*v.value/most))
		}
		fmt.Fprintf(&path, "L%sZ", svg.At(s.x(points[len(points)-1].at), y))
		s.Path("area", path.String())
	}
	for _, one := range p.over(`group(ALERTS{alertstate="firing",alertname="`+r.alert+`"})`, s.at.calm, s.at.end) {
		for _, v := range one.Values {
			s.Line("no", svg.At(s.x(v.at), y+5), svg.At(s.x(v.at.Add(time.Second)), y+5))
		}
	}
}

// points are what a row shows each second.
func (s sheet) points(p server, d *dashboards.Dashboard, r row) []point {
	expr := ""
	for _, panel := range d.Panels {
		for _, q := range panel.Targets {
			if panel.Title == r.panel && q.LegendFormat == r.legend {
				expr = asGrafana.Replace(q.Expr)
			}
		}
	}
	if expr == "" {
		p.Fatalf("the dashboard has no panel %q with the legend %q", r.panel, r.legend)
	}
	points := make([]point, int(s.at.end.Sub(s.at.calm)/time.Second)+1)
	for i := range points {
		points[i].at = s.at.calm.Add(time.Duration(i) * time.Second)
	}
	for _, one := range p.over(expr, s.at.calm, s.at.end) {
		for _, v := range one.Values {
			i := int(math.Round(v.at.Sub(s.at.calm).Seconds()))
			if math.IsNaN(v.value) || i >= len(points) {
				continue
			}
			value := v.value * scales[r.unit]
			if !r.largest {
				value += points[i].value
			}
			points[i].value = max(points[i].value, value)
		}
	}
	return points
}
