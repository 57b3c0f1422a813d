package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

// story is what befalls one key: guards of each policy whose leases and
// retentions are different, claims, calls that come late or from nowhere,
// operators, and a clock that moves.
type story struct {
	*judge
	rng    *rand.Rand
	guards []*idempotency.Guard
	stats  []idempotency.Stats // as the guards should have them
	claims []*claimed
	finds  found
	fails  error
	asked  int
}

type claimed struct {
	*idempotency.Claim
	of   int
	err  error // what Err says
	over bool  // it was concluded
}

// found is an outcome as the model sees it.
type found struct {
	idempotency.Outcome
	state  string // "" of Unknown
	result string
}

const hour = int64(3_600_000)

// The leases and retentions of the guards, in hours.
var (
	policyNames = []string{"retry", "reject", "reconcile"}
	leases      = []int64{1, 2, 3}
	retentions  = []int64{5, 6, 7}
	doubts      = []int64{40, 50, 60}
)

var errBooks = errors.New("the books are closed")

func newStory(t *testing.T, p *place, rng *rand.Rand, prefix, subject string, seen map[string]int) *story {
	t.Helper()
	h := &story{
		judge: &judge{place: p, key: prefix + ":guard:test:{" + subject + "}", seen: seen},
		rng:   rng, stats: make([]idempotency.Stats, len(policyNames)),
	}
	for i := range policyNames {
		opts := &idempotency.Options{
			Prefix: prefix, Budget: 10 * time.Second, InDoubt: idempotency.InDoubt(i),
			Lease: time.Duration(leases[i]) * time.Hour, Retention: time.Duration(retentions[i]) * time.Hour,
			DoubtRetention: time.Duration(doubts[i]) * time.Hour,
		}
		if opts.InDoubt == idempotency.Reconcile {
			opts.Reconcile = h.reconcile
		}
		g, err := idempotency.New(h.judge, "test", opts)
		if err != nil {
			t.Fatal(err)
		}
		h.guards = append(h.guards, g)
	}
	return h
}

func (h *story) outcome() found {
	switch h.rng.IntN(5) {
	case 0, 4:
		return found{idempotency.NothingDone(), "free", ""}
	case 1:
		return found{idempotency.DoneWithout(), "gone", ""}
	case 2:
		return found{idempotency.Unknown(), "", ""}
	}
	result := fmt.Sprintf("result %03d\n\x00", h.rng.IntN(1000))[:h.rng.IntN(13)]
	return found{idempotency.DoneWith([]byte(result)), "done", result}
}

func (h *story) reconcile(ctx context.Context, c *idempotency.Claim) (idempotency.Outcome, error) {
	h.asked++
	if at, ok := idempotency.FromContext(ctx); !ok || at != c || c.Err() != nil || h.model.state != "asking" {
		return idempotency.Unknown(), h.blame("it is asked while the record is %s: %v", h.model.state, c.Err())
	}
	return h.finds.Outcome, h.fails
}

func (h *story) step(t *testing.T) {
	t.Helper()
	switch n := h.rng.IntN(40); {
	case n < 8:
		h.begin(t)
	case n < 14 && len(h.claims) > 0:
		h.claim(t, h.claims[max(0, len(h.claims)-1-h.rng.IntN(3))])
	case n == 14:
		h.resolve(t)
	case n == 15 && h.rng.IntN(2) == 0:
		h.forget(t)
	case n == 16:
		h.get(t)
	case n < 33:
		h.stray(t)
	default:
		h.clock(t)
	}
	if h.fault != nil {
		t.Fatalf("%v\nafter\n%s", h.fault, strings.Join(h.told[max(0, len(h.told)-12):], "\n"))
	}
}

func (h *story) wrong(format string, args ...any) { _ = h.blame(format, args...) }

func (h *story) begin(t *testing.T) {
	t.Helper()
	i := h.rng.IntN(len(h.guards))
	print := h.model.print
	if h.rng.IntN(4) == 0 {
		print = []string{"", "a", "b"}[h.rng.IntN(3)]
	}
	print = strings.TrimPrefix(print, "-")
	if h.model.state == "doubt" || h.model.situation() == "pending lapsed" {
		i = max(i, h.rng.IntN(len(h.guards))) // for "asking" is rare
	}
	h.finds, h.fails, h.first, h.asked = h.outcome(), nil, nil, 0
	if h.rng.IntN(6) == 0 {
		h.fails = errBooks
	}
	c, result, err := h.guards[i].Begin(t.Context(), h.subject(), print)
	var want error
	claims, replay, n := false, "", &h.stats[i]
	switch first := h.first.(type) {
	case int64:
		if want = idempotency.ErrInFlight; first == 0 {
			want = idempotency.ErrMismatch
		}
	case string:
		state, _, _ := strings.Cut(first, " ")
		replay = strings.TrimPrefix(h.model.result, "p")
		if claims = state == "pending"; state == "asking" {
			claims = h.reconciled(i)
			state = h.model.state
			if h.asked != 1 {
				h.wrong("it is asked %d times", h.asked)
			}
		}
		switch state {
		case "gone":
			want = idempotency.ErrNoResult
		case "doubt":
			if want = idempotency.ErrInDoubt; h.asked > 0 && h.fails != nil && !errors.Is(err, h.fails) {
				h.wrong("the error of who is asked is not told: %v", err)
			}
		}
	}
	switch {
	case (c != nil) != claims || !same(err, want):
		h.wrong("Begin: claimed %v, %v, not %v, %v", c != nil, err, claims, want)
	case claims:
		n.Begun++
		n.Running++
		if c.Fence() != h.model.fence || c.Attempt() != h.model.attempt || c.Err() != nil || result != nil {
			h.wrong("a claim of fence %d, attempt %d, %v, %q", c.Fence(), c.Attempt(), c.Err(), result)
		}
		h.claims = append(h.claims, &claimed{Claim: c, of: i})
	case want == nil:
		if n.Replayed++; string(result) != replay {
			h.wrong("Begin: %q, not %q", result, replay)
		}
	case errors.Is(want, idempotency.ErrInFlight):
		n.InFlight++
	case errors.Is(want, idempotency.ErrMismatch):
		n.Mismatched++
	case errors.Is(want, idempotency.ErrNoResult):
		n.NoResult++
	case errors.Is(want, idempotency.ErrInDoubt):
		n.InDoubt++
	}
}

// reconciled says whether the one who asked may run it, after the books said
// what they said, and looks whether the record does too.
func (h *story) reconciled(i int) (claims bool) {
	want, n := h.finds.state, &h.stats[i]
	switch {
	case h.fails != nil || want == "":
		want = "doubt"
		n.Abandoned++
	case want == "free":
		want = "asking"
	default:
		n.Completed++
	}
	if h.model.state != want || want == "done" && h.model.result != "p"+h.finds.result {
		h.wrong("it was asked, and the record is %q, not %s", h.model.text(), want)
	}
	return want == "asking"
}

// claim does something with a claim, whatever became of it.
func (h *story) claim(t *testing.T, c *claimed) {
	t.Helper()
	h.reply = nil
	if h.rng.IntN(2) == 0 {
		h.renew(t, c)
	} else {
		h.conclude(t, c)
	}
	if err := c.Err(); !same(err, c.err) || (c.Context().Err() == nil) != (c.err == nil) || !same(context.Cause(c.Context()), c.err) {
		h.wrong("Err is %v, and the context %v, not %v", err, context.Cause(c.Context()), c.err)
	}
}

// same says of an error that it is the one that was wanted.
func same(err, want error) bool { return errors.Is(err, want) && (want != nil || err == nil) }

func (h *story) renew(t *testing.T, c *claimed) {
	t.Helper()
	before, want := h.calls, c.err
	err := c.Renew(t.Context())
	switch {
	case want != nil:
		if h.calls != before {
			h.wrong("a claim that is over is renewed")
		}
	case h.reply == int64(0):
		want = idempotency.ErrConcluded
	case h.reply != int64(1):
		want = idempotency.ErrLost
	}
	if c.err == nil && want != nil {
		h.stats[c.of].Running--
		h.stats[c.of].Lost++
	}
	if c.err = want; !same(err, want) {
		h.wrong("Renew: %v, not %v", err, want)
	}
}

func (h *story) conclude(t *testing.T, c *claimed) {
	t.Helper()
	o, before, n := h.outcome(), h.calls, &h.stats[c.of]
	var err error
	switch o.state {
	case "done":
		err = c.Complete(t.Context(), []byte(o.result))
	case "free":
		err = c.Abandon(t.Context())
	default:
		err = c.Conclude(t.Context(), o.Outcome)
	}
	if c.over {
		if h.calls != before {
			h.wrong("a claim is concluded twice")
		}
		return
	}
	c.over = true
	if c.err == nil {
		n.Running--
		c.err = idempotency.ErrConcluded
	}
	became := o.state // as the outcome and the policy say
	if became == "" {
		became = "doubt"
		if c.of == 0 {
			became = "free"
		}
	}
	var want error
	switch reply := h.reply; {
	case reply == int64(-2) && became == "free":
		n.Abandoned++
	case reply == int64(-2):
		n.Abandoned++
		want = idempotency.ErrLost
	case reply == int64(-1):
		n.Overtaken++
		want = idempotency.ErrLost
	case o.state == "done" || o.state == "gone":
		if n.Completed++; reply == int64(2) {
			n.Flushed++
		}
	default:
		n.Abandoned++
	}
	if !same(err, want) {
		h.wrong("it is concluded as %q: %v, not %v", o.state, err, want)
	}
	if reply := h.reply; reply == int64(2) && h.model.state != became {
		h.wrong("it is concluded as %q, and %s", o.state, h.model.state)
	}
	if last := h.events[len(h.events)-1]; last.args[1] != became {
		h.wrong("it is concluded as %q, and %v is called", o.state, last)
	}
}

func (h *story) subject() string {
	return strings.TrimSuffix(h.key[strings.Index(h.key, "{")+1:], "}")
}

func (h *story) resolve(t *testing.T) {
	t.Helper()
	o := h.outcome()
	h.reply = nil
	err := h.guards[h.rng.IntN(len(h.guards))].Resolve(t.Context(), h.subject(), o.Outcome)
	var want error
	switch {
	case o.state == "":
		want = idempotency.ErrUnresolved
	case h.reply == int64(-1):
		want = idempotency.ErrInFlight
	case h.reply != int64(1):
		want = idempotency.ErrNotInDoubt
	}
	switch {
	case !same(err, want):
		h.wrong("Resolve: %v, not %v", err, want)
	case err == nil && (h.model.state != o.state || o.state == "done" && h.model.result != "p"+o.result):
		h.wrong("it is resolved as %q, and %q", o.state, h.model.text())
	}
}

func (h *story) forget(t *testing.T) {
	t.Helper()
	had := h.model.state != ""
	if got, err := h.guards[0].Forget(t.Context(), h.subject()); err != nil || got != had {
		h.wrong("Forget: %v, %v", got, err)
	}
}

func (h *story) get(t *testing.T) {
	t.Helper()
	h.reply = nil
	got, err := h.guards[0].Get(t.Context(), h.subject())
	if err != nil {
		h.wrong("Get: %v", err)
	}
	m := &h.model
	if m.state == "" {
		if got != (idempotency.Record{}) {
			h.wrong("Get: %+v", got)
		}
		return
	}
	parts := h.reply.([]any) // which the judge has seen to
	want := idempotency.Record{
		State: map[string]idempotency.State{
			"pending": idempotency.Pending, "asking": idempotency.Pending, "free": idempotency.Free,
			"done": idempotency.Done, "gone": idempotency.NoResult, "doubt": idempotency.Doubtful,
		}[m.state],
		Attempt: m.attempt, Fence: m.fence, Size: len(m.result),
		Lease:   time.Duration(parts[2].(int64)) * time.Millisecond,
		Expires: time.Duration(parts[3].(int64)) * time.Millisecond,
	}
	if got != want {
		h.wrong("Get: %+v, not %+v", got, want)
	}
}

// stray has a call come that is late, or of which no claim knows: of an owner
// that there was, or of a stranger.
func (h *story) stray(t *testing.T) {
	t.Helper()
	e := h.rarest()
	if len(h.events) > 0 && h.rng.IntN(3) == 0 {
		e = h.events[h.rng.IntN(len(h.events))]
	}
	h.send(t, e)
}

func (h *story) send(t *testing.T, e event) {
	t.Helper()
	args := []any{"evalsha", scripts[e.script].SHA(), "1", h.key}
	for _, arg := range e.args {
		args = append(args, arg)
	}
	if err := h.Process(t.Context(), redis.NewCmd(t.Context(), args...)); err != nil {
		h.wrong("%v: %w", e, err)
	}
}

// scene has a history begin where most others do not come: with a run that is in
// doubt, is asked about, or was.
func (h *story) scene(t *testing.T) {
	t.Helper()
	const lease, keep = "3600000", "18000000"
	for _, e := range []event{
		{"begin", []string{"first", "a", lease, keep, "retry"}},
		{"abandon", []string{"first", "doubt", keep, keep}},
		{"begin", []string{"second", "a", lease, keep, "reconcile"}},
	}[:h.rng.IntN(4)] {
		h.send(t, e)
	}
	if h.model.running() && h.rng.IntN(4) > 0 {
		h.pass(h.model.left() + 3*h.slack)
	}
}

// rarest is what has happened least often to a record that is where this is.
func (h *story) rarest() event {
	m, where := &h.model, h.model.situation()
	best, least := "", math.MaxInt
	for _, cell := range cells {
		what, ok := strings.CutPrefix(cell, where+": ")
		if n := h.seen[cell]; ok && n < least && (m.print != "-" || !strings.HasSuffix(what, another)) {
			best, least = what, n
		}
	}
	what, others := strings.CutSuffix(best, another)
	what, owners := strings.CutSuffix(what, byOwner)
	print, owner := m.print, fmt.Sprint("stranger", h.rng.Int64())
	if others || m.state == "" {
		print = "b"
		if m.print == "b" {
			print = "a"
		}
	}
	if owners {
		owner = m.owner
	} else if former := len(h.events); former > 0 && h.rng.IntN(2) == 0 {
		if before := h.events[h.rng.IntN(former)].args[0]; before != m.owner {
			owner = before
		}
	}
	i := h.rng.IntN(len(policyNames))
	ms := func(hours []int64) string { return strconv.FormatInt(hours[i]*hour, 10) }
	name, how, _ := strings.Cut(what, " ")
	result := ""
	if how == "done" {
		result = "p a stray result"
	}
	switch name {
	case "begin":
		return event{name, []string{owner, print, ms(leases), ms(retentions), how}}
	case "renew":
		return event{name, []string{owner, ms(leases), ms(doubts)}}
	case "complete":
		return event{name, []string{owner, how, ms(retentions), strconv.FormatInt(m.fence+7, 10), "3", "a", result}}
	case "abandon":
		return event{name, []string{owner, how, ms(retentions), ms(doubts)}}
	case "resolve":
		return event{name, []string{owner, how, ms(retentions), result}}
	}
	return event{script: name}
}

// clock has time pass, or go back by up to a day, or takes the record's time to
// live away. Where the server's clock cannot be moved nothing is within a slack
// of the end of a lease.
func (h *story) clock(t *testing.T) {
	t.Helper()
	m := &h.model
	if m.state == "" {
		return
	}
	var ms int64
	switch n := h.rng.IntN(10); {
	case n < 5 && m.running(): // about the end of the lease, and of what is thought of as its end
		ms = m.left() + h.rng.Int64N(3) - 1
		if h.slack > 0 {
			ms += (h.rng.Int64N(2)*2 - 1) * 3 * h.slack
		}
	case n == 5 && m.lives != immortal: // about that of the record
		ms = m.lives + (h.rng.Int64N(3)-1)*max(1, 3*h.slack)
	case n == 6:
		ms = -h.rng.Int64N(24 * hour)
	case n == 7:
		m.lives = immortal
		h.live(h.key, immortal)
		h.told = append(h.told, "PERSIST")
		return
	default:
		ms = h.rng.Int64N(4 * hour)
	}
	if near := m.ends - m.micros/1000 - ms; h.slack > 0 && m.running() && near > -2*h.slack && near < 2*h.slack {
		ms += 4 * h.slack
	}
	h.pass(ms)
}

func (h *story) pass(ms int64) {
	m := &h.model
	if m.lives != immortal {
		if m.lives -= ms; m.lives <= h.slack {
			m.forget()
		}
	}
	h.moved(h.key, ms, m)
	m.micros = h.micro()
	h.told = append(h.told, fmt.Sprintf("%d ms pass: %s", ms, m.situation()))
}

const (
	byOwner = " by its owner"
	another = " of another"
)

// cells are the fields of the table, but for those that cannot be met: nobody
// owns what is not there.
var cells = func() (all []string) {
	for _, where := range []string{
		"none", "pending", "pending lapsed", "asking", "asking lapsed", "free", "done", "gone", "doubt",
	} {
		for _, what := range []string{
			"begin retry", "begin reject", "begin reconcile", "renew", "complete done", "complete gone",
			"abandon free", "abandon doubt", "abandon undo", "resolve free", "resolve done", "resolve gone",
		} {
			all = append(all, where+": "+what)
			if where == "none" {
				continue
			}
			all = append(all, where+": "+what+byOwner)
			if strings.HasPrefix(what, "begin") {
				all = append(all, where+": "+what+another)
			}
		}
		all = append(all, where+": forget", where+": inspect")
	}
	return all
}()

// TestRecordEqualsModel has guards of each policy, and calls that are late, work
// on a record and on its model, the clock being moved: answers, state, attempt,
// fence, lease and retention are the same, and each call that is repeated
// changes nothing.
func TestRecordEqualsModel(t *testing.T) { //nolint:tparallel // what they have met is counted when all have ended
	t.Parallel()
	var mu sync.Mutex
	all, total := map[string]int{}, 0
	t.Run("on", func(t *testing.T) {
		for name, c := range map[string]struct {
			place func(*testing.T) *place
			calls int // compared with the model
		}{
			"miniredis 1": {onMiniredis, 50_000}, "miniredis 2": {onMiniredis, 50_000}, "standalone": {onServer, 10_000},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				calls, seen := stories(t, c.place(t), redistest.Ops(c.calls))
				mu.Lock()
				defer mu.Unlock()
				total += calls
				for cell, n := range seen {
					all[cell] += n
				}
			})
		}
	})
	var missed []string
	for _, cell := range cells {
		if all[cell] < total/8000 {
			missed = append(missed, fmt.Sprintf("%s: %d", cell, all[cell]))
		}
	}
	if !t.Failed() && (len(missed) > 0 || total < redistest.Ops(110_000)) {
		t.Errorf("%d calls, and too few of\n%s", total, strings.Join(missed, "\n"))
	}
}

func stories(t *testing.T, p *place, want int) (calls int, seen map[string]int) {
	t.Helper()
	const steps = 10
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	prefix, seen := redistest.Prefix(t), map[string]int{}
	for _, s := range scripts {
		if err := p.rdb.ScriptLoad(t.Context(), s.Source()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; calls < want; i++ {
		h := newStory(t, p, rng, prefix, fmt.Sprint("key", i), seen)
		h.scene(t)
		for range steps {
			h.step(t)
		}
		for i, g := range h.guards {
			if got := g.Stats(); got != h.stats[i] {
				t.Fatalf("seed %d, %s: the stats are\n%+v, not\n%+v", seed, policyNames[i], got, h.stats[i])
			}
		}
		calls += h.calls
		p.rdb.Del(t.Context(), h.key)
	}
	return calls, seen
}
