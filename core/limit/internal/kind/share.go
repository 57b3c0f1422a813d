package kind

import "time"

// In an outage, a process that is one of n keeps the state of the whole limit in its
// cells, as if each of the other processes did the same as this one: a permit counts n
// times. So what is left is divided by n, whenever Redis was last asked. Permits come
// back as they do in Redis, and n may change at any time.

// retryShare is the RetryAfter of a cost above the share of this process. It is a guess:
// when Redis will decide again is not known.
const retryShare = time.Second

// share returns what one of n instances may take of left permits: at least 1 if the whole
// limit is left.
func share(left, limit, n int64) int64 {
	if n <= 1 {
		return left
	}
	if limit < n && left == limit {
		return 1
	}
	return left / n
}

// room returns how many permits must be free so that this process, one of n, may take a
// cost. If the cost is above the process's share, fits is false.
func (r *Rule) room(cost, n int64) (all int64, fits bool) {
	if cost > share(r.Limit, r.Limit, n) {
		return r.Limit, false
	}
	return min(cost*max(n, 1), r.Limit), true
}

// counts returns how many permits a granted cost counts as. If n is above the limit, a
// bucket counts more than its capacity, so that its debt takes n times as long to drain.
func (r *Rule) counts(cost, n int64) int64 {
	if r.Heaviest > 0 && n > 1 {
		return min(cost*n, r.Heaviest)
	}
	all, _ := r.room(cost, n)
	return all
}

// figures returns what a reading means for a request to this process that costs the
// policy cost permits.
func (r *Rule) figures(was Reading, cost int64) Figures {
	n := int64(was.Instances)
	if n <= 1 {
		return r.Figures(was, min(cost, r.Limit))
	}
	all, fits := r.room(cost, n)
	f := r.Figures(was, all)
	if was.Denied && !fits {
		f.RetryAfter = retryShare
	}
	f.Remaining = share(f.Remaining, r.Limit, n)
	if !r.Entries && f.Remaining < share(r.Limit, r.Limit, n) {
		was.Denied = true
		all, _ = r.room(f.Remaining+1, n)
		f.NextAfter = r.Figures(was, all).RetryAfter
	}
	return f
}

// Unshared reports whether a request is above the share in some of the readings. These
// readings then cannot tell when it would be granted.
func (s *Set) Unshared(readings []Reading, w Wanted) bool {
	for i, r := range s.Rules {
		if n := int64(readings[i].Instances); n > 1 {
			if _, fits := r.room(w.Of(r), n); !fits {
				return true
			}
		}
	}
	return false
}
