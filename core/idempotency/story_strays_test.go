package idempotency_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// stray makes a call that comes late, or that no claim made. Its owner is one that
// existed, or a stranger.
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
	words := e.args
	if e.script == "begin" { // its terms are one argument
		words = []string{words[0], words[1], strings.Join(words[2:], " ")}
	}
	for _, word := range words {
		args = append(args, word)
	}
	if err := h.Process(t.Context(), redis.NewCmd(t.Context(), args...)); err != nil {
		h.wrong("%v: got the error %w, want none", e, err)
	}
}

// scene begins a history in a state that most histories do not reach: with a run that is
// in doubt, is asked about, or was.
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

// rarest returns the call that has happened least often to a record in this state.
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

// clock lets time pass, sets the clock back by up to a day, or removes the TTL of the
// record. If the test cannot move the server's clock, no step is within a slack of the
// end of a lease.
func (h *story) clock(t *testing.T) {
	t.Helper()
	m := &h.model
	if m.state == "" {
		return
	}
	var ms int64
	switch n := h.rng.IntN(10); {
	case n < 5 && m.running(): // near the end of the lease, and near what may be mistaken for its end
		ms = m.left() + h.rng.Int64N(3) - 1
		if h.slack > 0 {
			ms += (h.rng.Int64N(2)*2 - 1) * 3 * h.slack
		}
	case n == 5 && m.lives != immortal: // near the end of the record
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
