package limit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/internal/token"
	"github.com/neap-go/neap/core/script"
)

// Settlement is the result of a Settle.
type Settlement struct {
	// After is the limiter's state afterwards, as Peek would report it. While the subject
	// owes more than its limit, Remaining is 0, and RetryAfter is how long until a permit
	// is free.
	After Decision
	// Forgiven is how many permits of the actual cost were not charged, because a policy
	// would owe more than its MaxDebt. With several policies it is the largest such
	// number.
	Forgiven int64
}

// Settle replaces the cost that a decision took by what was actually used: for example an
// estimate of tokens by the tokens, or an announced length by the bytes. Until then the
// estimate counts as taken for every caller.
//
// If more was used, Settle charges the difference now, even if the limit is reached. A
// policy can owe up to its MaxDebt beyond its Limit or Burst. It then admits nothing
// until it owes less. The debt of a bucket drains; the debt of a window ends with it.
// What is beyond MaxDebt is forgiven. So requests exceed a limit by at most what those in
// flight use beyond their estimates. A policy that forgives nothing admits on average no
// more than its rate.
//
// If less was used, Settle gives the difference back as [Limiter.Refund] does: for a
// window while it lasts, and for a bucket what has not drained. If the window has ended
// meanwhile, the estimate stays in it, and what was used beyond the estimate charges the
// current window.
//
// A decision is settled once. The first actual cost counts, however many copies of the
// decision there are. Settle and Refund exclude each other. A decision that is never
// settled keeps its estimate, also after a crash, unless its policy is [WithLease]. A
// decision of FailOpen took nothing, so nothing is charged. A [PerRequest] policy is not
// changed. A [SlidingLog] cannot be settled, because it promises never to hold more than
// its limit; put it into PerRequest.
//
// The error is [ErrSettle] if there is nothing to settle, ctx.Err(), or a
// [*script.Error]. After an error of Redis, call Settle again within five minutes of the
// first call: a marker in Redis prevents a second charge. Settle costs one round trip,
// and one more the first time a difference is given back. If the reply of a call is lost,
// Settle makes it again, for up to four times the Budget.
func (d *Decision) Settle(ctx context.Context, actual int64) (Settlement, error) {
	misuse.Context(ctx)
	switch {
	case d == nil || d.grant == nil:
		return Settlement{}, unsettled("it is no decision of a limiter")
	case d.permits != nil:
		return Settlement{}, unsettled("its permit was charged ahead (Prepaid)")
	case actual < 0 || actual > exact:
		return Settlement{}, unsettled(fmt.Sprintf("the actual cost is %d: use 0 to 2^53", actual))
	}
	g := d.grant
	l := g.of
	if g.peek || g.denied {
		return Settlement{}, unsettled("it was denied, or a Peek")
	}
	if err := errors.Join(l.CanSettle(), ctx.Err()); err != nil {
		return Settlement{}, err
	}
	once, err := g.settleOnce()
	if err != nil {
		return Settlement{}, err
	}
	here := g.open || g.local // a decision in process, where nothing can fail
	if here && once.done.Swap(true) {
		return Settlement{}, unsettled("it was settled before")
	}
	var s Settlement
	switch {
	case g.open:
		s.After = *d
	case g.local:
		s = l.local.settle(l, g, actual)
	default:
		s, err = l.remote.settle(ctx, l, g, actual, once)
	}
	if err != nil {
		return Settlement{}, err
	}
	if !here && once.done.Swap(true) {
		return Settlement{}, unsettled("it was settled before")
	}
	l.changed(g.subject)
	l.count.settled.Add(1)
	l.count.forgiven.Add(s.Forgiven)
	return s, nil
}

// changed ends the remembered denials of a subject, and makes the first caller that waits
// for it ask again.
func (l *Limiter) changed(subject string) {
	l.memory.changed(subject)
	l.queues.changed(subject)
}

func unsettled(why string) error { return fmt.Errorf("%w: %s", ErrSettle, why) }

// CanSettle returns nil if the limiter's decisions can be settled. Otherwise the error
// says why not: a policy is a SlidingLog, or permits are Prepaid. It sends nothing.
func (l *Limiter) CanSettle() error {
	if !l.made() {
		return errLimiter
	}
	if l.opts.Prepaid.Most > 0 {
		return unsettled("the limiter is Prepaid, and keeps no permit for each request: leave out one of them")
	}
	for _, r := range l.rules {
		if _, log := r.(*slidingLog); log && !r.id().once {
			return unsettled(fmt.Sprintf("policy %q is a SlidingLog, which never holds more than its limit: use another policy, or PerRequest", r.id().name))
		}
	}
	return nil
}

// A marker lives for markerLives. A settlement can be tried again for settledAgain.
const (
	markerLives  = 10 * time.Minute
	settledAgain = markerLives / 2
)

// settling is a decision that is being settled. All its calls use one token.
type settling struct {
	token string
	began time.Time
	done  atomic.Bool
}

// settleOnce returns the same settling to every call for a decision.
func (g *grant) settleOnce() (*settling, error) {
	s := g.settling.Load()
	switch {
	case s == nil && g.spent.CompareAndSwap(false, true):
		s = &settling{token: cmp.Or(g.token, token.New()), began: time.Now()}
		g.settling.Store(s)
	case s == nil:
		return nil, unsettled("it was given back or settled before")
	case s.done.Load():
		return nil, unsettled("it was settled before")
	case time.Since(s.began) > settledAgain:
		return nil, unsettled(fmt.Sprintf("it was tried for %v without an answer", settledAgain))
	}
	return s, nil
}

// settles reports whether a rule took permits for a decision and can be settled.
func settles(r rule, told reading) bool { return !told.refused() && !r.id().once }

func (r *remote) settle(ctx context.Context, l *Limiter, g *grant, actual int64, once *settling) (Settlement, error) {
	var s Settlement
	err := ask.Repeat(ctx, time.Now(), 4*l.opts.Budget, func() (err error) {
		s, err = r.trySettle(ctx, l, g, actual, once)
		return err
	})
	return s, err
}

func (r *remote) trySettle(ctx context.Context, l *Limiter, g *grant, actual int64, once *settling) (Settlement, error) {
	for again := false; ; again = true {
		keys, args := r.toSettle(l, g, actual, once)
		if len(keys) == 1 { // only the marker: all policies are shadows that denied, or PerRequest
			return l.settlement(g, slicesOf(g.readings), 0), nil
		}
		var result settled
		var err error
		if actual < g.cost || g.token != "" {
			result, err = r.atItsTime(ctx, g, keys, args)
		} else { // the difference is charged now, whatever the time is
			result, err = r.runAt(ctx, r.store.Node(ctx, keys[0]), keys, args([]any{"0", "0", "0"})...)
		}
		if err != nil {
			return Settlement{}, err
		}
		numbers, _ := result.reply.([]any)
		if now, outside := outside(numbers); outside {
			if again {
				return Settlement{}, &script.Error{Script: settleScript.Name(), Class: script.ErrFailed, Err: errMoves}
			}
			l.seen(now)
			continue
		}
		if s, ok := l.readSettled(g, numbers, actual); ok {
			return s, nil
		}
		return Settlement{}, &script.Error{Script: settleScript.Name(), Class: script.ErrFailed, Err: errReply}
	}
}

// toSettle returns the keys of limit_settle.lua and a function that makes its arguments
// from what is known of the clock. once is nil for a refund.
func (r *remote) toSettle(l *Limiter, g *grant, actual int64, once *settling) (keys []string, args func(clock []any) []any) {
	var behind []string // keys that follow those of the policies: the marker, and estimates
	lives := time.Duration(0)
	if once != nil {
		behind, lives = append(behind, r.space.Key(g.subject, "settled:"+once.token)), markerLives
	}
	charged := make([]int, 0, len(l.rules))
	for i, rule := range l.rules {
		if told := g.readings[i]; !told.refused() && (once == nil || settles(rule, told)) {
			keys, charged = append(keys, r.space.Key(g.subject, rule.id().tail)), append(charged, i)
		}
	}
	count := len(keys)
	var policies []any
	for _, i := range charged {
		rule, told, estimates := l.rules[i], g.readings[i], 0
		if hasLease(rule) {
			behind = append(behind, r.estimatesOf(rule, g.subject))
			estimates = count + len(behind)
		}
		entry := rule.entry()
		if w, is := rule.(*calendar); is && (once == nil || givesBackOnly(w, g, actual)) {
			entry = w.refundEntry(told)
		}
		policies = append(append(policies, entry[:]...), integer(rule.most()), integer(rule.id().costs(g.cost)), integer(rule.term(told)), integer(int64(estimates)))
	}
	return append(keys, behind...), func(clock []any) []any {
		head := append([]any{integer(actual)}, clock...)
		return append(append(head, integer(int64(count)), integer(lives.Milliseconds()), g.token), policies...)
	}
}

// givesBackOnly reports whether a settlement charges nothing to a calendar's window. One
// whose estimate was taken back charges the present window.
func givesBackOnly(w *calendar, g *grant, actual int64) bool { return actual <= g.cost && !hasLease(w) }

// outside returns what the clock of Redis shows if it is in none of a calendar's windows.
func outside(numbers []any) (now int64, is bool) {
	if len(numbers) != 2 || numbers[0] != int64(0) {
		return 0, false
	}
	now, is = numbers[1].(int64)
	return now, is
}

// readSettled reads the reply of limit_settle.lua.
func (l *Limiter) readSettled(g *grant, numbers []any, actual int64) (s Settlement, ok bool) {
	if len(numbers) < 2 {
		return s, false
	}
	now, timed := numbers[0].(int64)
	forgiven, ok := numbers[1].(int64)
	numbers = numbers[2:]
	readings := slicesOf(g.readings)
	for i, r := range l.rules {
		if !settles(r, g.readings[i]) {
			readings[i] = r.age(readings[i], time.Since(g.answered).Microseconds())
			continue
		}
		width := r.width()
		w, one := r.(*calendar)
		if one = one && givesBackOnly(w, g, actual); one {
			width-- // the script knows only the decision's own window
		}
		if len(numbers) < width {
			return s, false
		}
		var whole bool
		if readings[i], whole = readSlice(numbers[:width]); !whole || !plausible(r, readings[i]) {
			return s, false
		}
		if one {
			b := w.boundsAt(now / 1000)
			readings[i].n[2] = b.at[2] - b.at[1]
		}
		numbers = numbers[width:]
	}
	return l.settlement(g, readings, forgiven), ok && timed && len(numbers) == 0
}

func slicesOf(readings []reading) []reading { return append([]reading(nil), readings...) }

// settlement reports readings as Peek does.
func (l *Limiter) settlement(g *grant, readings []reading, forgiven int64) Settlement {
	for i, r := range l.rules {
		readings[i] = foresee(r, readings[i], 0, 1)
	}
	s := Settlement{Forgiven: forgiven}
	l.judge(&s.After, readings, aRequest(1))
	s.After.Degraded = g.local && l.remote != nil
	s.After.grant = l.refused // so that it cannot be refunded: it took nothing
	return s
}

// settle does in Go what limit_settle.lua does.
func (b *local) settle(l *Limiter, g *grant, actual int64) Settlement {
	readings := make([]reading, len(l.rules))
	forgiven := int64(0)
	b.change(l, g, func(cells []*cell, now int64) {
		forgiven = settleModel(l.rules, cells, now, g, actual, moment{g.at, g.at}, readings)
		subject := l.space.Subject(g.subject)
		for i, r := range l.rules {
			b.cells.Add(localKey{subject, r.id().tail}, cells[i])
		}
	})
	return l.settlement(g, readings, forgiven)
}

// settleModel charges each rule or gives back to it. It returns the most that one rule
// forgave.
func settleModel(rules []rule, cells []*cell, now int64, g *grant, actual int64, at moment, into []reading) (forgiven int64) {
	for i, r := range rules {
		r.advance(cells[i], now)
		if settles(r, g.readings[i]) {
			n := max(int64(g.readings[i].instances), 1) // each permit counts n times
			if more := actual - g.cost; more > 0 {
				forgiven = max(forgiven, r.owe(cells[i], min(more, math.MaxInt64/n)*n)/n)
			} else if more < 0 {
				r.refund(cells[i], r.term(g.readings[i]), counts(r, g.cost, n), min(-more, math.MaxInt64/n)*n, at)
			}
		}
		into[i] = r.read(cells[i], 0)
		into[i].instances = g.readings[i].instances
	}
	return forgiven
}
