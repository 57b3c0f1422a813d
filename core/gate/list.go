package gate

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
)

// List is a set of subjects and of prefixes of addresses in this process: those that no limit
// holds for ([List.Skip]), or those that are refused ([Block]). It is read and swapped as a whole,
// concurrently. The zero List is empty and ready to use.
//
// It is a list of this process: have each process read it from where you keep it, and Swap it
// when it changes. To ban a subject in all processes at once, use [limit.Limiter.Ban].
type List struct {
	now atomic.Pointer[listed]
}

// listed is immutable.
type listed struct {
	subjects map[string]struct{}
	prefixes []netip.Prefix // in order, and apart from each other
}

// Swap puts new entries in the place of all that are there. A request sees the old ones or the new
// ones. A subject is what a key makes of a request ([Subject]). A prefix holds for the subjects of [ByIP]
// that lie in it; that of a single address is netip.PrefixFrom(addr, addr.BitLen()). ByIP makes of an
// IPv6 address its network of 64 bits, which lies in no longer prefix. If the list has longer ones, give
// its ByIP an IPv6Prefix of 128.
//
// The error joins every fault of the entries, and leaves the list as it was. It takes some 50 ms for
// 100,000 prefixes. Swap copies what it is given.
func (l *List) Swap(subjects []string, prefixes []netip.Prefix) error {
	next := &listed{subjects: make(map[string]struct{}, len(subjects))}
	var faults []error
	for i, s := range subjects {
		if s == "" {
			faults = append(faults, fmt.Errorf("gate.List: subjects[%d] is empty: use what gate.Subject returns", i))
		}
		next.subjects[strings.Clone(s)] = struct{}{}
	}
	all := make([]netip.Prefix, 0, len(prefixes))
	for i, given := range prefixes {
		prefix, fault := plainPrefix(given)
		if fault != "" {
			faults = append(faults, fmt.Errorf("gate.List: prefixes[%d] is %s, %s", i, given, fault))
		}
		all = append(all, prefix.Masked())
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	next.prefixes = apart(all)
	l.now.Store(next)
	return nil
}

// apart sorts prefixes and leaves out those that lie in another.
func apart(all []netip.Prefix) []netip.Prefix {
	slices.SortFunc(all, func(a, b netip.Prefix) int {
		if by := a.Addr().Compare(b.Addr()); by != 0 {
			return by
		}
		return a.Bits() - b.Bits() // the wider first
	})
	kept := all[:0]
	for _, p := range all {
		if n := len(kept); n == 0 || !kept[n-1].Contains(p.Addr()) {
			kept = append(kept, p)
		}
	}
	return slices.Clip(kept)
}

// Has reports whether a subject is on the list, by itself or by a prefix. It takes less than a
// microsecond, whatever the list holds, and allocates nothing. A nil List has none.
func (l *List) Has(subject string) bool {
	if l == nil {
		return false
	}
	now := l.now.Load()
	if now == nil {
		return false
	}
	if _, there := now.subjects[subject]; there || len(now.prefixes) == 0 {
		return there
	}
	text, is := strings.CutPrefix(subject, "ip=")
	if !is {
		return false
	}
	of, ok := parseIP(text)
	return ok && now.holds(of)
}

// parseIP reads what writeIP has written behind its tag.
func parseIP(text string) (netip.Prefix, bool) {
	if strings.Contains(text, "/") {
		p, err := netip.ParsePrefix(text)
		return p, err == nil
	}
	addr, err := netip.ParseAddr(text)
	return netip.PrefixFrom(addr, addr.BitLen()), err == nil
}

// holds says whether a network lies in one of the prefixes: the last that does not begin behind it is
// the only one that it can lie in.
func (l *listed) holds(of netip.Prefix) bool {
	i, _ := slices.BinarySearchFunc(l.prefixes, of.Addr(), func(p netip.Prefix, addr netip.Addr) int {
		if p.Addr().Compare(addr) <= 0 {
			return -1
		}
		return 1
	})
	return i > 0 && l.prefixes[i-1].Contains(of.Addr()) && l.prefixes[i-1].Bits() <= of.Bits()
}

// Skip makes a function for the Skip of a gate's options: it skips the requests whose subject by this
// key is on the list. A request that the key fails for is not skipped. It panics on a nil List and a nil key.
func (l *List) Skip(key Key) func(Request) bool {
	l.must("List.Skip")
	mustKey("List.Skip", key)
	return func(r Request) bool {
		s, err := subject(r, key)
		return err == nil && l.Has(s)
	}
}

func (l *List) must(of string) {
	if l == nil {
		panic("gate." + of + ": the list is nil; use a new(gate.List)")
	}
}
