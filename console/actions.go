package console

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
)

// Action is what an operator asked for and confirmed.
type Action struct {
	// Primitive and Name say what was acted upon.
	Primitive store.Primitive
	Name      string
	// Key is the subject, key or item. Keep it out of logs that others read.
	Key string
	// Do is "reset", "ban" or "unban" of a limiter; "force" of a locker; "nothing done", "done" (Resolve has these two) or
	// "forget" of a guard; "restock" of a stock.
	Do string
	// For is how long a ban lasts.
	For time.Duration
	// Units and ID are those of a restock.
	Units int64
	ID    string
}

// act carries an action out, and reports whether there was anything to act upon.
type act func(ctx context.Context, a *Action) (found bool, err error)

// edition tells what is known of a lock or of a guard's key from what is known later. That of other things is zero.
type edition struct {
	Fence int64             `json:"fence"`
	State idempotency.State `json:"state"`
}

var errChanged = errors.New("console: the key is not as it was when it was looked up")

// order is an Action as the page asks for it, and what the operator has seen.
type order struct {
	query
	edition

	Do        string `json:"do"`
	Confirmed bool   `json:"confirmed"`
	Seconds   int64  `json:"seconds"`
	Units     int64  `json:"units"`
	ID        string `json:"id"`
}

// done answers an action.
type done struct {
	Found bool `json:"found"`
}

const longestBan = 366 * 24 * 60 * 60 // seconds

// act carries out an action that the Options allow and the operator has confirmed.
func (c *console) act(w http.ResponseWriter, r *http.Request) {
	var o order
	if !decode(w, r, &o) {
		return
	}
	t := c.things.all[o.id]
	switch {
	case t.actions[o.Do] == nil:
		answer(w, http.StatusNotFound, failure{"unknown action"})
		return
	case !o.Confirmed:
		answer(w, http.StatusBadRequest, failure{"not confirmed"})
		return
	case o.Do == "ban" && (o.Seconds < 1 || o.Seconds > longestBan):
		answer(w, http.StatusBadRequest, failure{"seconds"})
		return
	}
	a := Action{
		Primitive: o.Primitive, Name: o.Name, Key: o.Key, Do: o.Do,
		For: time.Duration(o.Seconds) * time.Second, Units: o.Units, ID: o.ID,
	}
	found, err := t.carryOut(context.WithoutCancel(r.Context()), &a, o.edition) // for Acted: a client that leaves undoes nothing
	if c.acted != nil {
		c.acted(r, a, err)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, http.StatusOK, done{found})
}

// carryOut carries an action out, unless the key is not as the operator has seen it.
func (t *thing) carryOut(ctx context.Context, a *Action, seen edition) (found bool, err error) {
	if t.now != nil {
		now, err := t.now(ctx, a.Key)
		if err == nil && now != seen {
			err = errChanged
		}
		if err != nil {
			return false, err
		}
	}
	return t.actions[a.Do](ctx, a)
}

func limiterThing(l *limit.Limiter) thing {
	return thing{look: lookLimit(l), order: []string{"reset", "ban", "unban"}, actions: map[string]act{
		"reset": func(ctx context.Context, a *Action) (bool, error) { return l.Reset(ctx, a.Key) },
		"ban":   func(ctx context.Context, a *Action) (bool, error) { return true, l.Ban(ctx, a.Key, a.For) },
		"unban": func(ctx context.Context, a *Action) (bool, error) { return l.Unban(ctx, a.Key) },
	}}
}

func lockerThing(l *lock.Locker) thing {
	now := func(ctx context.Context, key string) (edition, error) {
		s, err := l.Inspect(ctx, key)
		return edition{Fence: s.Fence}, err
	}
	return thing{look: lookLock(l), now: now, order: []string{"force"}, actions: map[string]act{
		"force": func(ctx context.Context, a *Action) (bool, error) { return l.ForceRelease(ctx, a.Key) },
	}}
}

func guardThing(g *idempotency.Guard) thing {
	resolve := func(as func() idempotency.Outcome) act {
		return func(ctx context.Context, a *Action) (bool, error) { return true, g.Resolve(ctx, a.Key, as()) }
	}
	now := func(ctx context.Context, key string) (edition, error) {
		r, err := g.Inspect(ctx, key)
		return edition{r.Fence, r.State}, err
	}
	return thing{look: lookRecord(g), now: now, order: []string{"nothing done", "done", "forget"}, actions: map[string]act{
		"nothing done": resolve(idempotency.NothingDone),
		"done":         resolve(idempotency.DoneWithout),
		"forget":       func(ctx context.Context, a *Action) (bool, error) { return g.Forget(ctx, a.Key) },
	}}
}

func stockThing(s *stock.Stock) thing {
	return thing{look: lookLevel(s), order: []string{"restock"}, actions: map[string]act{
		"restock": func(ctx context.Context, a *Action) (bool, error) { return true, s.Restock(ctx, a.Key, a.ID, a.Units) },
	}}
}
