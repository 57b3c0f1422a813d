package lua

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

// Joined is a script that is made of parts, which are files of limits/.
type Joined struct {
	Name, Text string

	origins []string // of each line
}

// Where returns the file and the line that a line of the text, from 1 on, comes from.
func (j Joined) Where(line int) string {
	if line < 1 || line > len(j.origins) {
		return fmt.Sprintf("%s:%d", j.Name, line)
	}
	return j.origins[line-1]
}

// part is a file of limits/: what it says of itself, and what Redis runs. What a kind needs
// alone follows the line alone, and what settlements need of it the line settled.
type part struct{ doc, body, aloneDoc, alone, settled []line }

type line struct{ text, origin string }

const (
	alone   = "-- Alone."
	settled = "-- Settled."
)

func read(name string) (p part) {
	source, err := fs.ReadFile(limits, "limits/"+name+".lua")
	if err != nil {
		panic("lua: " + err.Error()) // only if a caller names a kind that there is not
	}
	into, doc := &p.body, &p.doc
	for n, text := range strings.Split(strings.TrimSpace(string(source)), "\n") {
		l := line{text, fmt.Sprintf("limits/%s.lua:%d", name, n+1)}
		switch {
		case text == alone:
			into, doc = &p.alone, &p.aloneDoc
		case text == settled:
			into, doc = &p.settled, nil
		case doc != nil && strings.HasPrefix(text, "--"):
			*doc = append(*doc, l)
		default:
			doc = nil
			*into = append(*into, l)
		}
	}
	return p
}

func joined(name string, pieces ...[]line) Joined {
	j := Joined{Name: name}
	var text strings.Builder
	for _, l := range slices.Concat(pieces...) {
		text.WriteString(l.text + "\n")
		j.origins = append(j.origins, l.origin)
	}
	j.Text = text.String()
	return j
}

// Kinds are the kinds of policies, in the order in which scripts have them.
var Kinds = []string{"bucket", "fast", "kept", "window", "calendar", "sliding", "log"}

// clocked are the kinds whose scripts read TIME.
var clocked = []string{"fast", "kept", "log", "calendar"}

// ordered returns each kind once, in the order of Kinds, and what a calendar needs.
func ordered(kinds []string) (parts []string) {
	for _, kind := range Kinds {
		if slices.Contains(kinds, kind) || kind == "window" && slices.Contains(kinds, "calendar") {
			parts = append(parts, kind)
		}
	}
	return parts
}

// functions returns the functions of kinds, with the variables that they share.
func functions(clock bool, kinds ...string) (lines []line) {
	lines = read("shared").body
	if clock {
		lines = append(lines, read("now").body...)
	}
	for _, kind := range kinds {
		lines = append(lines, read(kind).body...)
	}
	return lines
}

// Lone returns the script that decides one request under one policy. It is a file here, too.
func Lone(kind string) Joined {
	own := read(kind)
	code := functions(slices.Contains(clocked, kind), ordered([]string{kind})...)
	return joined("limit_"+kind+".lua", own.doc, madeOf, own.aloneDoc, code, own.alone)
}

// between stands between two comments, and madeOf in a script that is checked in.
var (
	between = []line{{text: "--"}}
	madeOf  = []line{{text: "--"}, {text: "-- Its parts are files of limits/, and `go test ./lua -update` joins them."}}
)

// made has what Take and Settle made, by its name.
var made sync.Map

// Made returns the scripts that Take and Settle have made in this process.
func Made() (all []Joined) {
	made.Range(func(_, j any) bool {
		all = append(all, j.(Joined))
		return true
	})
	return all
}

// Take returns the script that decides requests under policies of those kinds. A kind may
// be named more than once.
func Take(bans, leases bool, kinds ...string) Joined {
	parts := ordered(kinds)
	clock := bans || leases || slices.ContainsFunc(parts, func(kind string) bool { return slices.Contains(clocked, kind) })
	if bans {
		parts = append(parts, "ban")
	}
	if leases {
		parts = append(parts, "estimates")
	}
	name := "limit_take(" + strings.Join(parts, " ") + ")"
	return once(name, func() Joined {
		take := read("take")
		return joined(name, docs(parts), take.doc, functions(clock, parts...), take.body)
	})
}

// Settle returns the script that settles and refunds decisions of policies of those kinds.
func Settle(kinds ...string) Joined {
	parts := ordered(kinds)
	name := "limit_settle(" + strings.Join(parts, " ") + ")"
	return once(name, func() Joined {
		settle := read("settle")
		code := append(functions(true), read("settled").body...)
		for _, kind := range parts {
			if kind != "log" { // it needs none of its functions
				code = append(code, read(kind).body...)
			}
			code = append(code, read(kind).settled...)
		}
		return joined(name, docs(parts), settle.doc, code, settle.body)
	})
}

// docs returns what parts say of themselves.
func docs(parts []string) (lines []line) {
	for _, part := range parts {
		lines = append(append(lines, read(part).doc...), between...)
	}
	return lines
}

func once(name string, join func() Joined) Joined {
	j, is := made.Load(name)
	if !is {
		j, _ = made.LoadOrStore(name, join())
	}
	return j.(Joined)
}
