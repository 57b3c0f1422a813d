package gate_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

func whole(addr netip.Addr) netip.Prefix { return netip.PrefixFrom(addr, addr.BitLen()) }

// randomAddr is close to others, so that prefixes nest and touch.
func randomAddr(rng *rand.Rand) netip.Addr {
	if rng.IntN(2) == 0 {
		return netip.AddrFrom4([4]byte{10, byte(rng.IntN(3)), byte(rng.IntN(256)), byte(rng.IntN(256))})
	}
	return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 5: byte(rng.IntN(3)), 7: byte(rng.IntN(256)), 8: byte(rng.IntN(3)), 15: byte(rng.IntN(256))})
}

// by is the subject of an address, with this many bits if it is IPv6.
func by(t testing.TB, addr netip.Addr, bits int) string {
	t.Helper()
	s, err := gate.Subject(gate.ByIP(&gate.IPOptions{IPv6Prefix: bits}), gate.Values{Addr: addr})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestListHasWhatItsPrefixesContain compares Has with a check of each prefix.
func TestListHasWhatItsPrefixesContain(t *testing.T) {
	t.Parallel()
	rng := redistest.Rand(t)
	met := map[bool]int{}
	for range 100 {
		prefixes := make([]netip.Prefix, rng.IntN(30))
		for i := range prefixes {
			addr := randomAddr(rng)
			prefixes[i] = netip.PrefixFrom(addr, addr.BitLen()-rng.IntN(18))
			if rng.IntN(10) == 0 && addr.Is4() {
				prefixes[i] = netip.PrefixFrom(netip.AddrFrom16(addr.As16()), 128-rng.IntN(18)) // as IPv6 writes it
			}
			if rng.IntN(50) == 0 {
				prefixes[i] = netip.PrefixFrom(addr, rng.IntN(17))
			}
		}
		var l gate.List
		if err := l.Swap(nil, prefixes); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			addr, bits := randomAddr(rng), []int{64, 128, 120}[rng.IntN(3)]
			of := whole(addr)
			if addr.Is6() {
				of = netip.PrefixFrom(addr, bits).Masked()
			}
			want := slices.ContainsFunc(prefixes, func(p netip.Prefix) bool {
				if p.Addr().Is4In6() {
					p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
				}
				return p.Contains(of.Addr()) && p.Bits() <= of.Bits()
			})
			met[want]++
			if got := l.Has(by(t, addr, bits)); got != want {
				t.Fatalf("%v: got that %s is on the list: %t, want %t", prefixes, of, got, want)
			}
		}
	}
	if met[true] < 500 || met[false] < 500 {
		t.Errorf("got %v, want 500 of both", met)
	}
}

func TestListIsSwappedWhole(t *testing.T) {
	t.Parallel()
	var l gate.List
	ann, bob, cid := "header=X-Account:ann", "ip=192.0.2.1", "header=X-Account:cid"
	if l.Has(ann) || (*gate.List)(nil).Has(ann) {
		t.Error("an empty list and a nil one: got a subject on it, want none")
	}
	one, other := []string{ann, cid}, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	if err := l.Swap(one, nil); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	stop := make(chan struct{})
	all.Go(func() {
		defer close(stop)
		for range 500_000 {
			l.Has(ann)
			l.Has(bob)
			if !l.Has(cid) {
				t.Error("got a subject gone that is on the list before and after each swap, want it there")
				return
			}
		}
	})
	all.Go(func() {
		for {
			select {
			case <-stop:
				if err := l.Swap(one, other); err != nil {
					t.Error(err)
				}
				return
			default:
			}
			if err := errors.Join(l.Swap(one, nil), l.Swap([]string{cid}, other), l.Swap(one, other)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	all.Wait()
	for subject, want := range map[string]bool{
		ann: true, bob: true, "ip=192.0.3.1": false, "ip=2001:db8::/64": false, "header=X-Account:bob": false,
		"ip=no address": false, "header=192.0.2.1": false, "192.0.2.1": false, "": false,
	} {
		if got := l.Has(subject); got != want {
			t.Errorf("%q: got that it is on the list: %t, want %t", subject, got, want)
		}
	}
	for says, err := range map[string]error{
		"the list is nil: use new(gate.List)":              (*gate.List)(nil).Swap(nil, nil),
		"subjects[1] is empty":                             l.Swap([]string{"a", ""}, nil),
		"prefixes[0] is invalid Prefix, no prefix":         l.Swap(nil, []netip.Prefix{{}}),
		"prefixes[1] is ::ffff:0.0.0.0/96, which is every": l.Swap(nil, append(slices.Clone(other), netip.MustParsePrefix("::ffff:0:0/96"))),
	} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want an error with %q", err, says)
		}
	}
	if !l.Has(ann) || !l.Has(bob) {
		t.Error("after swaps that were refused: the subjects are gone, want the list as it was")
	}
}

// The subjects on one list are never limited, those on the other are never served, and
// all others are limited.
func TestListsInFrontOfALimit(t *testing.T) {
	t.Parallel()
	var friends, foes gate.List
	limited := gate.RateLimit(hourly(t, 1), gate.ByIP(nil), &gate.RateLimitOptions{Skip: friends.Skip(gate.ByIP(nil))})
	var told error
	g := gate.Chain(gate.Block(&foes, gate.ByIP(nil), &gate.BlockOptions{OnError: func(_ gate.Request, err error) { told = err }}), limited)
	ask := func(addr string) int { return status(g.Enter(&request{peer: netip.MustParseAddrPort(addr)})) }
	statuses := func(addr string) string { return fmt.Sprint(ask(addr), ask(addr), ask(addr)) }
	if err := errors.Join(
		friends.Swap(nil, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/25")}),
		foes.Swap([]string{"ip=2001:db8::/64"}, []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}),
	); err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]string{
		"192.0.2.7:1": "200 200 200", "192.0.2.200:1": "200 429 429", "198.51.100.9:1": "403 403 403", "[2001:db8::7]:1": "403 403 403", "[2001:db8:1::7]:1": "200 429 429",
	} {
		if got := statuses(addr); got != want {
			t.Errorf("%s: got %s, want %s", addr, got, want)
		}
	}
	if err := foes.Swap(nil, nil); err != nil {
		t.Fatal(err)
	}
	if got := statuses("198.51.100.9:1"); got != "200 429 429" {
		t.Errorf("an address that was taken off the list: got %s, want it limited alone", got)
	}
	if got := status(g.Enter(&request{})); got != 500 || !errors.Is(told, gate.ErrWiring) {
		t.Errorf("a request without an address: got %d, and the hook told %v, want 500 and ErrWiring", got, told)
	}
	p := gate.Block(&friends, gate.ByIP(nil), &gate.BlockOptions{Render: func(d gate.Denial) gate.Reply {
		return gate.Reply{Body: []byte(fmt.Sprint(d.Status, d.RetryAfter))}
	}}).Enter(&request{peer: netip.MustParseAddrPort("192.0.2.7:1")})
	if p.Reply == nil || p.Reply.Status != 403 || string(p.Reply.Body) != "403 0s" || !p.Reply.Refused {
		t.Errorf("a rendered refusal: got %+v, want a 403 as it was rendered", p.Reply)
	}
	for says, wire := range map[string]func(){
		"gate.Block: the list is nil":     func() { gate.Block(nil, everyone, nil) },
		"gate.Block: the key is nil":      func() { gate.Block(&foes, nil, nil) },
		"gate.List.Skip: the list is nil": func() { (*gate.List)(nil).Skip(everyone) },
		"gate.List.Skip: the key is nil":  func() { foes.Skip(nil) },
	} {
		if got := fmt.Sprint(panics(t, wire)); !strings.Contains(got, says) {
			t.Errorf("got the panic %q, want %q", got, says)
		}
	}
}

// BenchmarkLists compares a limit in process behind two lists, of refused and of skipped
// subjects, with the limit alone.
func BenchmarkLists(b *testing.B) {
	rng := redistest.Rand(b)
	const many = 100_000
	entries := make([]netip.Prefix, many)
	subjects := make([]string, many)
	for i := range entries {
		v4 := netip.AddrFrom4([4]byte{byte(11 + rng.IntN(200)), byte(rng.IntN(256)), byte(rng.IntN(256)), byte(rng.IntN(256))})
		entries[i] = netip.PrefixFrom(v4, 16+rng.IntN(17))
		subjects[i] = fmt.Sprint("key:account=", i)
	}
	lists := func(subjects []string, prefixes []netip.Prefix) gate.Gate {
		var friends, foes gate.List
		if err := errors.Join(friends.Swap(subjects, prefixes), foes.Swap(subjects, prefixes)); err != nil {
			b.Fatal(err)
		}
		of := gate.ByIP(nil)
		l := local(b, limit.FixedWindow{Limit: 1 << 40, Window: time.Hour})
		return gate.Chain(gate.Block(&foes, of, nil), gate.RateLimit(l, of, &gate.RateLimitOptions{Skip: friends.Skip(of)}))
	}
	alone := gate.Chain(gate.RateLimit(local(b, limit.FixedWindow{Limit: 1 << 40, Window: time.Hour}), gate.ByIP(nil), nil))
	r := &request{peer: netip.MustParseAddrPort("10.1.2.3:4")}
	for _, c := range []struct {
		name string
		gate gate.Gate
	}{{"no lists", alone}, {"empty lists", lists(nil, nil)}, {"100,000 entries", lists(subjects, entries)}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if p := c.gate.Enter(r); p.Reply != nil {
					b.Fatal(p.Reply.Status)
				}
			}
		})
	}
	b.Run("Has", func(b *testing.B) {
		var l gate.List
		if err := l.Swap(subjects, entries); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			l.Has("ip=10.1.2.3")
		}
	})
	b.Run("Swap", func(b *testing.B) {
		var l gate.List
		for b.Loop() {
			if err := l.Swap(subjects, entries); err != nil {
				b.Fatal(err)
			}
		}
	})
}
