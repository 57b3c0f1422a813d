package main

import (
	"fmt"
	"strings"

	"github.com/neap-go/neap/internal/svg"
)

const (
	rowHeight = 20
	nameWidth = 230
	barWidth  = 230
	gap       = 90 // between the bars of two panels
	figureEnd = 52 // behind the longest bar, in a column that no line crosses
	top       = 70
)

const style = `<style>
text{font:12px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#57606a}
.title{font-size:13px;font-weight:600;fill:#24292f}
.neap{fill:#0d9488}.peer{fill:#8c959f}.tutorial{fill:#afb8c1}.floor{fill:#d0a215}
.line{stroke:#d0a215;stroke-dasharray:3 3}
.whisker{stroke:#24292f;fill:none}
@media(prefers-color-scheme:dark){
text{fill:#8b949e}.title{fill:#e6edf3}
.peer{fill:#6e7681}.tutorial{fill:#484f58}.floor{fill:#a07d10}
.whisker{stroke:#e6edf3}
}
</style>
`

// panel is one column of bars.
type panel struct {
	title  string
	format string
	figure func(name string) spread
	one    bool // has a line at 1, the floor
}

// picture is RESULTS.svg: throughput and CPU where it is busiest.
func picture(r *results) string {
	busy := r.busiest()
	panels := []panel{
		{"Decisions a second, as a ratio to the floor", "%.2f", func(name string) spread {
			return r.floors(rate, name, busy)
		}, true},
		{"Redis CPU a decision, microseconds", "%.1f", func(name string) spread {
			return r.of(commandCPU, name, cell{way: admitted, keys: busy.keys})
		}, false},
	}
	width, height := nameWidth+len(panels)*(barWidth+gap), top+len(r.contestants)*rowHeight+16
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" `+
		`aria-label="neap beside its peers">`+"\n", width, height)
	b.WriteString(style)
	fmt.Fprintf(&b, `<text class="title" x="0" y="16">%s</text>`+"\n",
		svg.Escape(fmt.Sprintf("%s; floor: %s", busy.text(), floorName)))
	b.WriteString(`<text x="0" y="33">bar and figure: the median; thin line: its quartiles; dashed line: the floor</text>
`)
	for i, c := range r.contestants {
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", nameWidth-8, rowAt(i)+14, svg.Escape(c.name))
	}
	for i, p := range panels {
		r.drawPanel(&b, p, nameWidth+i*(barWidth+gap))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (r *results) drawPanel(b *strings.Builder, p panel, left int) {
	most := 1e-9
	if p.one {
		most = 1
	}
	for _, c := range r.contestants {
		most = max(most, p.figure(c.name).high)
	}
	across := func(figure float64) float64 { return float64(left) + figure/most*barWidth }
	fmt.Fprintf(b, `<text class="title" x="%d" y="%d">%s</text>`+"\n", left, top-16, svg.Escape(p.title))
	if p.one {
		at := across(1)
		fmt.Fprintf(b, `<line class="line" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`+"\n",
			at, top-6, at, rowAt(len(r.contestants)))
	}
	for i, c := range r.contestants {
		s, text := p.figure(c.name), "–"
		if s.rounds > 0 {
			text = fmt.Sprintf(p.format, s.median)
			fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d" rx="2"/>`+"\n",
				c.kind, left, rowAt(i)+3, across(s.median)-float64(left), rowHeight-6)
			fmt.Fprintf(b, `<path class="whisker" d="M%.1[1]f %[3]dv6m0 -3H%.1[2]fm0 -3v6"/>`+"\n",
				across(s.low), across(s.high), rowAt(i)+rowHeight/2-3)
		}
		fmt.Fprintf(b, `<text class="figure" x="%d" y="%d" text-anchor="end">%s</text>`+"\n",
			left+barWidth+figureEnd, rowAt(i)+14, text)
	}
}

func rowAt(i int) int { return top + i*rowHeight }
