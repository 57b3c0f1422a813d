package gate

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/undo"
	"github.com/neap-go/neap/core/limit"
)

// Denial says why a gate does not let a request run: a 429 of a limit, a 409 of a lock, a
// refusal of 400 to 499 by a key, a 503 if Redis cannot answer, a 500 if the wiring is
// wrong. A Render function makes a [Reply] from it.
type Denial struct {
	// Kind is the reason. Status, Type and Title follow from it.
	Kind   Kind
	Status int
	// Type is the URI of the problem type (RFC 9457 section 3.1.1). It is empty if the
	// status says everything.
	Type string
	// Title is a short sentence, the same for every request that is denied for this
	// reason.
	Title string
	// Detail is a sentence about this request. It may be empty.
	Detail string
	// RetryAfter is how long a client should wait. It is 0 if waiting does not help. The
	// Retry-After field has it in whole seconds, rounded up.
	RetryAfter time.Duration
	// Header has the fields that belong to the denial: Retry-After, Cache-Control and
	// those of the rate limit. A rendered Reply gets each of them that it does not set
	// itself.
	Header []Field
	// Decision is what the limit decided if Kind is KindLimited or KindFull, and nil
	// otherwise. Do not change it.
	Decision *limit.Decision
	// Request is the request that is denied, so that an answer may carry its id or use
	// its language. It is valid until the Render function has returned; do not keep it.
	// You may keep the strings that its methods return.
	Request Request
}

// answers holds what the options of all gates have in common: how a gate answers a
// request that may not run.
type answers struct {
	render  func(Denial) Reply
	onError func(Request, error)
	hint    sync.Once // logs that OnError is not set
}

// deny refuses a request.
func (a *answers) deny(r Request, d Denial) Pass {
	denied := new(struct { // in one piece of memory
		reply  Reply
		denial Denial
	})
	denied.reply = a.reply(r, &d)
	denied.reply.Refused = true
	d.Request = nil
	denied.denial = d
	return Pass{Reply: &denied.reply, Denial: &denied.denial}
}

// reply renders a denial. No cache may keep it: RFC 6585 section 4 forbids that for a
// 429, and every other denial is true only for this caller at this moment.
func (a *answers) reply(r Request, d *Denial) Reply {
	d.Request = r
	d.complete()
	if d.RetryAfter > 0 || d.Status == 429 {
		wait := strconv.FormatInt(secondsAtLeastOne(d.RetryAfter), 10)
		d.Header = append(d.Header, Field{Name: fieldRetryAfter, Value: wait})
		d.Detail = "Retry after " + wait + " s."
	}
	d.Header = append(d.Header, Field{Name: fieldCacheControl, Value: "no-store"})
	if a.render == nil {
		return problem(d)
	}
	protocol := slices.Clone(d.Header)
	reply := a.render(*d)
	if reply.Status == 0 {
		reply.Status = d.Status
	}
	reply.Header = appendFields(missingFields(protocol, reply.Header), reply.Header)
	return reply
}

func missingFields(protocol, own []Field) []Field {
	return slices.DeleteFunc(protocol, func(f Field) bool {
		return slices.ContainsFunc(own, func(o Field) bool { return strings.EqualFold(o.Name, f.Name) })
	})
}

// refuse answers an error of a Key or of another function of the user's. A refusal is
// answered as it says. Any other error is answered with a 500, and the hook is told.
func (a *answers) refuse(r Request, err error) Pass {
	if refused, ok := asRefusal(err); ok {
		return a.deny(r, Denial{Kind: KindRefused, Status: refused.status, Title: refused.title})
	}
	a.fault(r, err)
	return a.deny(r, Denial{Kind: KindFault})
}

// fault tells of an error that is answered with a 500. If there is no hook, a line in the
// log says once that one is needed. It has no text of the error, which may name a key,
// unless that is a remedy.
func (a *answers) fault(r Request, err error) {
	if a.onError == nil {
		a.hint.Do(func() {
			about := []any{"route", r.Route()}
			if m, is := errors.AsType[*miswired](err); is {
				about = append(about, "remedy", m.remedy)
			}
			background.Log(nil, slog.LevelError, "neap: a gate answered a request with a 500; set OnError in its options to be told why", about...)
		})
	}
	a.tell(r, err)
}

// unavailable answers an error of the primitive behind the gate, with a kind whose status
// is 503. If the client went away, that is no outage, and the hook is not told. The answer
// is the same: a client that can still read it learns that the server is shutting down, and
// may try again.
func (a *answers) unavailable(r Request, err error, kind Kind) Pass {
	if !errors.Is(err, context.Canceled) {
		a.tell(r, err)
	}
	return a.deny(r, Denial{Kind: kind})
}

// tellBefore tells of a request that was granted something and has no Leave yet. If the hook
// does not return, undo gives back what was granted.
func (a *answers) tellBefore(r Request, err error, undo func()) {
	told := false
	defer func() {
		if !told {
			undo()
		}
	}()
	a.tell(r, err)
	told = true
}

// conclude tells of the error of end. If end goes on in the background, and fails there, the
// hook is told of that afterwards.
func (a *answers) conclude(ctx context.Context, r Request, end func(context.Context) error) {
	told := make(chan struct{})
	defer close(told)
	ctx = undo.WithDropped(ctx, func(err error) {
		<-told
		a.tell(r, err)
	})
	if err := end(ctx); err != nil {
		a.tell(r, err)
	}
}

func (a *answers) tell(r Request, err error) {
	if a.onError != nil {
		a.onError(r, err)
	}
}
