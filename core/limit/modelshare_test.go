package limit_test

// Without Redis, a process that is one of n counts each of its permits n times, as if the others
// did the same.

// share is how many of the permits that are left one process may take: at least 1 of a whole limit.
func (p *part) share(left int64) int64 {
	most := p.state.limit()
	switch n := *p.one; {
	case n <= 1:
		return left
	case most < n && left == most:
		return 1
	default:
		return left / n
	}
}

// room is how many permits must be free for one process to take a cost. It never takes more than
// its share.
func (p *part) room(cost int64) (all int64, fits bool) {
	most := p.state.limit()
	switch n := *p.one; {
	case n <= 1:
		return cost, true
	case cost > p.share(most):
		return most, false
	default:
		return min(cost*n, most), true
	}
}

// counts returns how many permits a cost counts as. In a bucket a cost counts once for each
// process, even if that is more than the limit.
func (p *part) counts(cost, n int64) int64 {
	if n <= 1 {
		return cost
	}
	switch p.state.(type) {
	case *bucket, *keptBucket:
		return cost * n
	}
	return min(cost*n, p.state.limit())
}

// more is how many permits must be free so that a process can take one more than now. A log does not
// tell when each of its permits leaves.
func (p *part) more(free int64) int64 {
	_, log := p.state.(*slidingLog)
	next := p.share(free) + 1
	if *p.one <= 1 || log || next > p.share(p.state.limit()) {
		return free + 1
	}
	room, _ := p.room(next)
	return room
}

// clone copies a model of policies without leases.
func (m *model) clone() *model {
	other := &model{inProcess: m.inProcess, one: m.one}
	if m.hold != nil {
		hold := *m.hold
		other.hold = &hold
	}
	for _, p := range m.parts {
		q := *p
		q.state, q.one = p.state.clone(), &other.one
		if p.bans != nil {
			bans := *p.bans
			q.bans = &bans
		}
		other.parts = append(other.parts, &q)
	}
	return other
}
