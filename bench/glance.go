package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/neap-go/neap/internal/svg"
)

// atAGlance are the contestants of GLANCE.svg: neap with its default, and each library by itself.
var atAGlance = []string{
	"neap bucket", "redis_rate", "rueidislimiter", "ulule/limiter", "go-redisstore", "throttled", "httprate",
}

const glanceFile = "GLANCE.svg"

// glanced is one row of GLANCE.svg: ratios to the floor, with one key, with many keys, and of a lone caller.
type glanced struct {
	name              string
	hot, spread, lone float64
}

// glance is GLANCE.svg, drawn from RESULTS.md, so that both always agree.
func glance(page string) (string, error) {
	rows, callers, keys, err := readGlance(page)
	if err != nil {
		return "", err
	}
	most := 1.0
	for _, r := range rows {
		most = max(most, r.hot, r.spread)
	}
	best := rows[1] // of the peers, since rows[0] is neap
	const width, top, step = 720.0, 112.0, 30.0
	height := top + step*float64(len(rows)) + 62
	title := fmt.Sprintf("Decisions a second, %d callers in one process", callers)
	d := svg.New(width, height, title, fmt.Sprintf("As multiples of a plain script that does nothing. With one hot key neap makes %s, "+
		"the fastest other library, %s, %s. With %s keys neap makes %s. %s",
		times(rows[0].hot), best.name, times(best.hot), keys, times(rows[0].spread), longestBar(rows)))
	d.Text(16, 30, svg.Title, title)
	d.Text(16, 52, svg.Small, "As a multiple of EVALSHA \"return 1\" through plain go-redis: a script that does nothing")
	const left, right, room = 150.0, 440.0, 210.0 // of the panels, and of the longest bar
	for _, p := range []struct {
		at     float64
		head   string
		figure func(glanced) float64
	}{
		{left, "All callers ask for one key", func(g glanced) float64 { return g.hot }},
		{right, "They ask for " + keys + " keys", func(g glanced) float64 { return g.spread }},
	} {
		d.Text(p.at, 86, svg.Name, p.head)
		for i, r := range rows {
			y := top + step*float64(i)
			class := "state"
			if i == 0 {
				class = "yes"
			}
			long := max(p.figure(r)/most*room, 1)
			d.Rect(class, svg.Box{Left: p.at, Top: y - 9, Right: p.at + long, Bottom: y + 9}, 2)
			d.Text(p.at+max(long, room/most)+8, y+5, svg.Plain, times(p.figure(r))) // the dashed line crosses none
		}
		one := p.at + room/most
		d.Line("edge", svg.At(one, top-16), svg.At(one, top+step*float64(len(rows))-14))
	}
	for i, r := range rows {
		class := svg.Plain
		if i == 0 {
			class = svg.Name
		}
		d.Text(left-12, top+step*float64(i)+5, class+" end", shown(r.name))
	}
	d.Text(16, height-38, svg.Small, fmt.Sprintf("Dashed: that script. A lone caller: neap %s, redis_rate %s, go-redisstore %s",
		times(rows[0].lone), times(of(rows, "redis_rate").lone), times(of(rows, "go-redisstore").lone)))
	d.Text(16, height-18, svg.Small, "All figures, and where another library wins: bench/RESULTS.md")
	return d.String(), nil
}

// longestBar says whose bar is the longest with one key, and with many.
func longestBar(rows []glanced) string {
	hot := slices.MaxFunc(rows, func(a, b glanced) int { return cmp.Compare(a.hot, b.hot) }).name
	spread := slices.MaxFunc(rows, func(a, b glanced) int { return cmp.Compare(a.spread, b.spread) }).name
	if hot != spread {
		return fmt.Sprintf("The longest bar is %s's with one key, and %s's with many.", shown(hot), shown(spread))
	}
	return fmt.Sprintf("The longest bar is %s's in both.", shown(hot))
}

// shown is how the picture names a contestant.
func shown(name string) string {
	if name == atAGlance[0] {
		return "neap"
	}
	return name
}

func times(n float64) string {
	if n >= 1.95 {
		return fmt.Sprintf("%.1f×", n)
	}
	return fmt.Sprintf("%.2f×", n)
}

func of(rows []glanced, name string) glanced {
	return rows[slices.IndexFunc(rows, func(g glanced) bool { return g.name == name })]
}

var (
	admittedTable = regexp.MustCompile(`(?s)\n## Decisions a second, admitted[^\n]*\n\n(.*?)\n(?:\n|$)`)
	columnHead    = regexp.MustCompile(`^(one hot key|([\d,]+) keys), (\d+)$`)
)

// readGlance reads the table of RESULTS.md: neap's row first, then the others, the fastest with one key first.
func readGlance(page string) (rows []glanced, callers int, keys string, err error) {
	table := admittedTable.FindStringSubmatch(page)
	if table == nil {
		return nil, 0, "", fmt.Errorf("the page has no table of decisions a second, admitted: %.200q", page)
	}
	lines := strings.Split(table[1], "\n")
	hot, lone, spread, fewest := -1, -1, -1, 0
	for i, head := range cellsOf(lines[0]) {
		m := columnHead.FindStringSubmatch(head)
		if m == nil {
			continue
		}
		n, _ := strconv.Atoi(m[3]) // digits
		switch {
		case m[2] != "" && (spread < 0 || n >= callers):
			spread, keys = i, m[2]
		case m[2] == "" && (lone < 0 || n < fewest):
			lone, fewest = i, n
		}
		if m[2] == "" && n >= callers {
			hot, callers = i, n
		}
	}
	if hot < 0 || spread < 0 {
		return nil, 0, "", fmt.Errorf("the table has the columns %q, want one of a hot key and one of many keys", lines[0])
	}
	for _, line := range lines[1:] {
		all := cellsOf(line)
		if len(all) <= max(hot, lone, spread) || !slices.Contains(atAGlance, all[0]) {
			continue
		}
		g := glanced{name: all[0]}
		for into, at := range map[*float64]int{&g.hot: hot, &g.lone: lone, &g.spread: spread} {
			figure, _, _ := strings.Cut(all[at], " ")
			if *into, err = strconv.ParseFloat(figure, 64); err != nil {
				return nil, 0, "", fmt.Errorf("the figure of %s in column %d: %w", g.name, at, err)
			}
		}
		rows = append(rows, g)
	}
	if len(rows) != len(atAGlance) {
		return nil, 0, "", fmt.Errorf("the table has %d of the contestants %q", len(rows), atAGlance)
	}
	slices.SortFunc(rows, func(a, b glanced) int {
		if (a.name == atAGlance[0]) != (b.name == atAGlance[0]) {
			return cmp.Compare(slices.Index(atAGlance, a.name), slices.Index(atAGlance, b.name))
		}
		return cmp.Compare(b.hot, a.hot)
	})
	return rows, callers, keys, nil
}

// cellsOf are those of a row of a table, without the first and the last bar.
func cellsOf(line string) []string {
	all := strings.Split(strings.Trim(line, "|"), "|")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}
