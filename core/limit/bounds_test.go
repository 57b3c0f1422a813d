package limit

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// bounded are what a process keeps by what a request chooses, and which subjects it keeps
// now. Each is bounded by MaxLocal in every part of its key: subjects and policies.
var bounded = map[string]struct {
	opts Options
	ban  bool // the policies have one
	kept func(l *Limiter) (subjects []string)
}{
	"states in process": {kept: func(l *Limiter) []string { return l.local.Known().States }},
	"bans":              {ban: true, kept: func(l *Limiter) []string { return l.local.Known().Bans }},
	"lifted bans":       {ban: true, kept: func(l *Limiter) []string { return l.local.Known().Lifted }},
	"seeds":             {opts: Options{Instances: 2}, kept: func(l *Limiter) []string { return l.local.Known().Seeds }},
	"denials":           {opts: Options{RememberDenials: time.Minute}, kept: func(l *Limiter) []string { return l.memory.Subjects() }},
	"denials of All":    {kept: func(l *Limiter) []string { return l.denials().Subjects() }},
	"overrides":         {opts: Options{Overrides: true}, kept: func(l *Limiter) []string { return l.overrides.known.Subjects() }},
	"prepaid accounts":  {opts: Options{Prepaid: Prepaid{Most: 10}}, kept: func(l *Limiter) []string { return l.accounts.Subjects() }},
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
					rdb, _ := redistest.Counted(t)
					opts := c.opts
					opts.MaxLocal, opts.Budget = most, time.Minute
					var first Policy = FixedWindow{Name: "w", Limit: 1, Window: time.Hour}
					if opts.Overrides {
						first = KeepOnChange(first)
					}
					l := must(New(rdb, "bounded", []Policy{first}, &opts))(t)
					l.plans = newPlans(most)
					var requests []string
					for i := range 3 * most {
						subject, plan := of(i)
						request := fmt.Sprintf("GET /search?user=%04d&q=", subject) + strings.Repeat("x", 100)
						requests = append(requests, request)
						user := request[17:21]
						var policy Policy = FixedWindow{Limit: int64(plan + 1), Window: time.Hour}
						if c.ban {
							policy = WithBan(policy, Ban{After: 1, Within: time.Hour, For: time.Hour})
						}
						if opts.Overrides {
							policy = KeepOnChange(FixedWindow{Name: "w", Limit: int64(plan + 1), Window: time.Hour})
						}
						one := must(l.With(policy))(t)
						if opts.Overrides {
							must(0, one.Override(t.Context(), user, time.Hour, FixedWindow{Limit: int64(5 * most), Window: time.Hour}))(t)
						}
						one.local.Take(one.set, &newRequest(user, 1, 1).Request, 0)
						must(one.TakeN(t.Context(), user, int64(plan+1)))(t)
						must(All(t.Context(), Ask{one, user, int64(plan + 1)}))(t)
						must(one.Take(t.Context(), user))(t)
						if name == "lifted bans" {
							must(one.Unban(t.Context(), user))(t)
						}
					}
					kept := c.kept(l)
					if len(kept) > most || len(kept) == 0 {
						t.Errorf("after %d requests: got %d kept, want some, and at most %d", 3*most, len(kept), most)
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

// TestSeedsAreBounded in number and in memory, whatever the subjects are. It is not
// parallel, because the heap belongs to the whole process.
func TestSeedsAreBounded(t *testing.T) { //nolint:paralleltest // as said
	const most = 20_000
	l := must(New(redistest.SameClient{}, "seeds", []Policy{FixedWindow{Limit: 5, Window: time.Hour}}, &Options{MaxLocal: most, Instances: 2}))(t)
	long := make([]byte, 4000)
	before := redistest.HeapInUse()
	for i := range 3 * most {
		subject := fmt.Sprint("subject-with-sixty-four-characters-or-some-less-which-is-kept-", i)
		if i%2 == 0 {
			subject = string(long) + subject
		}
		l.local.Note(l.set, &kind.Request{Subject: subject, Readings: make([]kind.Reading, 1)}, 2)
	}
	each := (int(redistest.HeapInUse()) - int(before)) / most
	kept := len(l.local.Known().Seeds)
	t.Logf("%d seeds, %d bytes each", kept, each)
	if kept > most || kept < most*8/10 || each > 512 {
		t.Errorf("got %d seeds kept and %d bytes for each of MaxLocal, want about %d and 512 at most", kept, each, most)
	}
	runtime.KeepAlive(l)
}

// TestSeedsAreKeptForInstancesAlone: by default no seed is stored.
func TestSeedsAreKeptForInstancesAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := &redistest.CutClient{Client: redistest.BubbleClient(t, redistest.Bubble(t))}
		l := must(New(must(store.Open(rdb, nil))(t), "n", []Policy{FixedWindow{Limit: 100, Window: time.Hour}}, nil))(t)
		kept := func() int { return len(l.local.Known().Seeds) }
		must(l.TakeN(t.Context(), "s", 30))(t)
		if kept() != 0 {
			t.Errorf("by default: got %d seeds, want none", kept())
		}
		if err := l.SetInstances(1); err != nil {
			t.Fatal(err)
		}
		must(l.TakeN(t.Context(), "s", 30))(t)
		if kept() != 1 {
			t.Errorf("after several decisions: got %d seeds of one subject, want one", kept())
		}
		rdb.Cut("refused")
		if d := must(l.TakeN(t.Context(), "s", 40))(t); !d.Allowed || d.Remaining != 0 || kept() != 0 {
			t.Errorf("a process alone: got %+v and %d seeds, want all that was left granted, and the seed used", d, kept())
		}
		if d := must(l.Take(t.Context(), "s"))(t); d.Allowed {
			t.Errorf("after all is taken: got %+v, want a denial", d)
		}
		rdb.Mend()
		for _, mode := range []store.FailMode{store.FailOpen, store.FailClosed} {
			l := must(New(rdb, "another", []Policy{FixedWindow{Limit: 1, Window: time.Hour}}, &Options{Fail: mode, Instances: 10}))(t)
			must(l.Take(t.Context(), "s"))(t)
			if seeds := l.local.Known().Seeds; seeds != nil {
				t.Errorf("%v: got seeds of %q, want none", mode, seeds)
			}
		}
	})
}

// TestRememberedDenialsAreBounded: at most MaxLocal are stored.
func TestRememberedDenialsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Counted(t)
		l := must(New(rdb, "n", []Policy{FixedWindow{Limit: 1, Window: time.Hour}},
			&Options{Budget: time.Minute, RememberDenials: time.Minute, MaxLocal: 64}))(t)
		for i := range 600 {
			for range 2 {
				must(l.Take(t.Context(), fmt.Sprint(i)))(t)
			}
		}
		if n := len(l.memory.Subjects()); n > 64 || n < 32 {
			t.Errorf("stored denials: got %d, want at most 64, and most of them", n)
		}
	})
}
