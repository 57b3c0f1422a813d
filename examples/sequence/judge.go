package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// given is a number that a process was given, and when.
type given struct {
	way          string
	asked, given int64 // in nanoseconds since 1970
	Number
}

func parse(line string) (g given, err error) {
	_, err = fmt.Sscan(line, &g.way, &g.asked, &g.given, &g.Day, &g.N)
	return g, err
}

func (n Number) less(m Number) bool { return n.Day < m.Day || n.Day == m.Day && n.N < m.N }

// judge says what is wrong with the numbers of all processes: one that was given
// twice, or that was not larger than one which was given before it was asked for;
// of those from blocks, which was given a lease before.
func judge(all []given) error {
	seen := map[Number]bool{}
	for _, g := range all {
		if seen[g.Number] {
			return fmt.Errorf("%v was given out twice", g.Number)
		}
		seen[g.Number] = true
	}
	byEnd := slices.Clone(all)
	slices.SortFunc(byEnd, func(a, b given) int { return cmp.Compare(a.given, b.given) })
	slices.SortFunc(all, func(a, b given) int { return cmp.Compare(a.asked, b.asked) })
	for way, slack := range map[string]time.Duration{"single": 0, "block": lease} {
		before := 0
		var largest given
		for _, g := range all {
			for ; byEnd[before].given < g.asked-slack.Nanoseconds(); before++ {
				if largest.less(byEnd[before].Number) {
					largest = byEnd[before]
				}
			}
			if g.way == way && !largest.less(g.Number) {
				return fmt.Errorf("%v, %s, was given out %v after %v", g.Number, way, time.Duration(g.given-largest.given), largest.Number)
			}
		}
	}
	return nil
}

// summary is a line about the numbers of one way.
func summary(way string, all []given) string {
	var first, last Number
	n := 0
	for _, g := range all {
		if g.way != way {
			continue
		}
		if n == 0 || g.less(first) {
			first = g.Number
		}
		if last.less(g.Number) {
			last = g.Number
		}
		n++
	}
	return fmt.Sprintf("%s: %d processes took %d numbers from %v to %v", way, processes, n, first, last)
}
