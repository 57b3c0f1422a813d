package queue

import "time"

// These constants decide how many batches are in flight, and when the next one leaves.
// sim_test.go shows the reasons in virtual time.
const (
	leastBatches = 2  // in flight to a server that is the bottleneck
	mostBatches  = 10 // of a queue in flight; go-redis' pool for pipelines has the same size
	soon         = 2  // with at most so many in flight, the next leaves at once
	crowd        = 32 // if so many calls wait, the next leaves while half of the batches are in flight
	spread       = 8  // batches leave one round trip divided by this apart

	leastWindow = 8
	mostWindow  = mostBatches * mostCalls
	growth      = 8                       // calls by which the window grows in a round trip
	memory      = int64(10 * time.Second) // the least time for which the shortest round trip is known
)

// pace learns from round trips how many calls the server takes at once.
type pace struct {
	budget int64
	trip   int64    // smoothed
	least  [2]int64 // the shortest of this span of time, and of the span before
	span   int64    // when this span began
	window int      // how many calls may be in flight
	cut    int64    // when the window was last cut
}

func newPace(budget time.Duration) pace {
	return pace{budget: int64(budget), window: mostWindow}
}

// returned notes the round trip of a batch. flying counts the calls in flight, including
// its own.
func (p *pace) returned(sent, now int64, calls, flying int) {
	took := max(now-sent, 1)
	if p.trip == 0 {
		p.trip = took
	} else {
		p.trip += (took - p.trip) / 8
	}
	if now-p.span > memory {
		p.least[0], p.least[1], p.span = took, p.least[0], now
	} else if p.least[0] == 0 || took < p.least[0] {
		p.least[0] = took
	}
	switch {
	case took <= max(p.budget/4, 2*p.shortest()):
		grows := calls // until the window was too large once
		if p.cut != 0 {
			grows = max(calls*growth/p.window, 1)
		}
		p.window = min(p.window+grows, mostWindow)
	case sent >= p.cut: // batches that were sent before the cut are late for the same reason
		p.window = max(min(p.window, flying)*3/4, leastWindow)
		p.cut = now
	}
}

func (p *pace) shortest() int64 {
	if p.least[1] != 0 {
		return min(p.least[0], p.least[1])
	}
	return p.least[0]
}

// batches returns how many batches may be in flight. If the server is the bottleneck, it
// works on one batch while the answers of another wake their callers. More batches would
// only wait there.
func (p *pace) batches() int {
	if p.trip == 0 {
		return mostBatches
	}
	return int(min(max(2*mostBatches*p.shortest()/p.trip, leastBatches), mostBatches))
}

func (p *pace) gap() int64 { return p.trip / spread }

// overdue returns how long a batch is in flight before the server counts as late.
func (p *pace) overdue() int64 { return max(4*p.trip, p.budget/2) }

// tooLate reports whether a call with so much time left would get its answer too late.
func (p *pace) tooLate(left int64) bool { return left < 2*p.trip && p.trip > 2*p.shortest() }

// fast reports whether answers come so soon that a short stall of the process does not
// use up the budget.
func (p *pace) fast() bool { return p.trip < p.budget/8 }
