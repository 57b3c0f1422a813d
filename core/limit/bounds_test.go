package limit

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// bounded are what a process keeps by what a request chooses, and which subjects it keeps
// now. Each is bounded by MaxLocal in every part of its key: subjects and policies.
var bounded = map[string]struct {
	opts Options
	ban  bool // the policies have one
	kept func(l *Limiter) (subjects []string)
}{
	"states in process": {kept: func(l *Limiter) (all []string) {
		for _, key := range l.local.cells.Keys() {
			all = append(all, key.subject)
		}
		return all
	}},
	"bans": {ban: true, kept: func(l *Limiter) (all []string) {
		for key := range l.local.records.byKey {
			all = append(all, key.subject)
		}
		return all
	}},
	"lifted bans": {ban: true, kept: func(l *Limiter) (all []string) {
		for _, key := range l.local.lifts.Keys() {
			all = append(all, key.subject)
		}
		return all
	}},
	"seeds": {opts: Options{Instances: 2}, kept: func(l *Limiter) (all []string) {
		for i := range l.seeds.shards {
			if last := l.seeds.shards[i].last; last != nil {
				for _, key := range last.Keys() {
					all = append(all, key.subject)
				}
			}
		}
		return all
	}},
	"denials":        {opts: Options{RememberDenials: time.Minute}, kept: func(l *Limiter) []string { return deniedSubjects(l.memory) }},
	"denials of All": {kept: func(l *Limiter) []string { return deniedSubjects(l.denials()) }},
	"prepaid accounts": {opts: Options{Prepaid: Prepaid{Most: 10}}, kept: func(l *Limiter) (all []string) {
		for _, of := range l.accounts.of {
			for _, one := range of {
				all = append(all, one.subject)
			}
		}
		if len(all) != l.accounts.all {
			panic(fmt.Sprintf("%d accounts are counted, and there are %d", l.accounts.all, len(all)))
		}
		return all
	}},
}

func deniedSubjects(m *memory) (all []string) {
	for i := range m.shards {
		for _, d := range m.shards[i].denials {
			all = append(all, d.key.subject)
		}
	}
	return all
}

// TestWhatIsKeptIsBoundedInEachKey while subjects, plans, or both, change with each request.
// None keeps the string of which a subject is a part.
func TestWhatIsKeptIsBoundedInEachKey(t *testing.T) {
	t.Parallel()
	const most = 20
	for name, c := range bounded {
		for flood, of := range map[string]func(i int) (subject, plan int){
			"subjects": func(i int) (int, int) { return i, 0 },
			"plans":    func(i int) (int, int) { return 0, i },
			"both":     func(i int) (int, int) { return i, i },
		} {
			t.Run(name+"/"+flood, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					rdb, _ := countedClient(t)
					opts := c.opts
					opts.MaxLocal, opts.Budget = most, time.Minute
					l := must(New(rdb, "bounded", []Policy{FixedWindow{Limit: 1, Window: time.Hour}}, &opts))(t)
					l.plans = newPlans(most)
					var requests []string
					for i := range 5 * most {
						subject, plan := of(i)
						request := fmt.Sprintf("GET /search?user=%04d&q=", subject) + strings.Repeat("x", 100)
						requests = append(requests, request)
						user := request[17:21]
						var policy Policy = FixedWindow{Limit: int64(plan + 1), Window: time.Hour}
						if c.ban {
							policy = WithBan(policy, Ban{After: 1, Within: time.Hour, For: time.Hour})
						}
						one := must(l.With(policy))(t)
						one.local.take(one, newGrant(user, 1, 1))
						must(one.TakeN(t.Context(), user, int64(plan+1)))(t)
						must(All(t.Context(), Ask{one, user, int64(plan + 1)}))(t)
						must(one.Take(t.Context(), user))(t)
						if name == "lifted bans" {
							must(one.Unban(t.Context(), user))(t)
						}
					}
					kept := c.kept(l)
					if len(kept) > most || len(kept) == 0 {
						t.Errorf("after %d requests: got %d kept, want some, and at most %d", 5*most, len(kept), most)
					}
					if n := l.plans.made.Len(); n > most {
						t.Errorf("got %d limiters of With kept, want at most %d", n, most)
					}
					for _, subject := range kept {
						for _, request := range requests {
							if within(subject, request) {
								t.Fatalf("the subject %s: got it kept as a part of a request of %d bytes, want a copy", subject, len(request))
							}
						}
					}
				})
			})
		}
	}
}

// within reports whether a string is a part of the memory of another.
func within(part, whole string) bool {
	at := uintptr(unsafe.Pointer(unsafe.StringData(part))) - uintptr(unsafe.Pointer(unsafe.StringData(whole)))
	return at < uintptr(len(whole))
}
