package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/neap-go/neap/examples/internal/terminal"
)

const barWidth = 40

// progress shows how far a sale is: a bar that is drawn anew where somebody
// watches, a line for each quarter where the output is a file.
type progress struct {
	out   io.Writer
	live  bool
	title string
	of    int

	n, sold int
}

func newProgress(out io.Writer, title string, of int) *progress {
	return &progress{out: out, live: terminal.Is(out), title: title, of: of}
}

func (p *progress) answered(sold bool) {
	p.n++
	if sold {
		p.sold++
	}
	steps := 4
	if p.live {
		steps = 100
	}
	if step := p.n * steps / p.of; step == (p.n-1)*steps/p.of {
		return
	}
	if !p.live {
		fmt.Fprintf(p.out, "%-9s %d of %d answered, %d sold\n", p.title, p.n, p.of, p.sold)
		return
	}
	full := p.n * barWidth / p.of
	fmt.Fprintf(p.out, "\r%-9s %s%s %3d %%, %d sold", p.title,
		strings.Repeat("█", full), strings.Repeat("░", barWidth-full), p.n*100/p.of, p.sold)
}

// end leaves the bar's line.
func (p *progress) end() {
	if p.live {
		fmt.Fprintln(p.out)
	}
}
