package gate

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
)

// List is a set of subjects and of address prefixes in this process. Use it for subjects
// that no limit holds for ([List.Skip]), or for subjects that are refused ([Block]). The
// zero List is empty and ready to use. Its methods are safe for concurrent use:
// [List.Swap] replaces all entries at once.
//
// A List is known to this process only. Let each process read the entries from where you
// keep them, and call Swap when they change. To ban a subject in all processes at once,
// use [limit.Limiter.Ban].
type List struct {
	now atomic.Pointer[listed]
}

// listed is immutable.
type listed struct {
	subjects map[string]struct{}
	prefixes []netip.Prefix // sorted, and none contains another
}

// Swap replaces all entries with new ones. A request sees either the old entries or the
// new ones. Swap copies what it is given. It takes about 50 ms for 100,000 prefixes.
//
// A subject is what a key makes from a request; [Subject] returns it. A prefix matches
// the subjects of [ByIP] that lie in it. The prefix of a single address is
// netip.PrefixFrom(addr, addr.BitLen()). By default ByIP turns an IPv6 address into its
// network of 64 bits, which no longer prefix contains. If the list has longer prefixes,
// give its ByIP an IPv6Prefix of 128, and no IPv4Prefix.
//
// If entries are wrong, Swap leaves the list as it was. The error joins the faults of all
// entries.
func (l *List) Swap(subjects []string, prefixes []netip.Prefix) error {
	if l == nil {
		return errors.New("gate.List: the list is nil: use new(gate.List)")
	}
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

// apart sorts prefixes and leaves out each one that lies in another.
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

// Has reports whether a subject is on the list, by itself or through a prefix. It takes
// less than a microsecond, however long the list is, and allocates nothing. A nil List is
// empty.
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

// parseIP reads what writeIP writes after the tag.
func parseIP(text string) (netip.Prefix, bool) {
	if strings.Contains(text, "/") {
		p, err := netip.ParsePrefix(text)
		return p, err == nil
	}
	addr, err := netip.ParseAddr(text)
	return netip.PrefixFrom(addr, addr.BitLen()), err == nil
}

// holds reports whether a network lies in one of the prefixes. It can only lie in the
// last prefix that does not begin after it.
func (l *listed) holds(of netip.Prefix) bool {
	i, _ := slices.BinarySearchFunc(l.prefixes, of.Addr(), func(p netip.Prefix, addr netip.Addr) int {
		if p.Addr().Compare(addr) <= 0 {
			return -1
		}
		return 1
	})
	return i > 0 && l.prefixes[i-1].Contains(of.Addr()) && l.prefixes[i-1].Bits() <= of.Bits()
}

// Skip returns a function for the field Skip of a gate's options. It skips a request if
// the subject that key makes from it is on the list. It does not skip a request for which
// the key fails. Skip panics on a nil List and on a nil key.
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
