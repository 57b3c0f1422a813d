package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/neap-go/neap/core/idempotency"
)

// Idempotent returns a gate that runs requests with the same Idempotency-Key once, in all
// processes that share the guard's name and Redis, whatever framework serves them. Later
// requests get the answer of the first one, with the header field Idempotent-Replayed.
// The key has 1 to 255 printable ASCII characters, quoted as in
// draft-ietf-httpapi-idempotency-key-header-07, or bare, without a comma and a double
// quote. The gate answers
//
//   - 400 without a usable key, unless it is Optional,
//   - 401 if the principal is missing; 400 to 499 if the principal's key refuses
//     otherwise,
//   - 409 with Retry-After 1 while another request with the key runs; with Wait, if it
//     still runs after the wait,
//   - 409 if the request was done but its answer was not stored, or if it is in doubt,
//   - 413 if the body is too large, 400 if it is broken,
//   - 422 if the key was used for another request,
//   - 503 if Redis could not answer: the handler does not run, unless Fail says so,
//   - 500 if a key is wired wrongly or fails,
//
// with problem types that begin with [TypeIdempotency].
//
// # What a key stands for
//
// A key stands for one request of one principal, with one method and path. The principal,
// such as the account of an API key, keeps a client from getting the answers of another
// one. Use [Everyone] to say explicitly that there are no principals. The same key with
// another query or body is refused, now and later.
//
// # The handler's context
//
// The handler's context is that of the claim: idempotency.FromContext finds the claim,
// with its fence and attempt. The context ends when the claim is lost, and at a deadline
// that was set outside. It does not end when the client goes away, because the client
// will come back for the answer. A handler may give up because another context has ended,
// such as that of the client, which middleware has kept. Let it then answer with a
// status, because an empty 200 is stored. It is not if the handler has released a lock of
// [Exclusive].
//
// # What is stored
//
//   - An answer is stored unless its status says that nothing was done, or that the
//     outcome is unknown; see Replay of [IdempotentOptions].
//   - An answer that is too long, was flushed or was taken over is not stored, but the
//     request was done. Later ones get a 409 that says so, and never run.
//   - After a panic, or an answer of 500 and above, the guard's policy decides.
//   - A refusal by a gate further in ([Reply.Refused]) means that nothing was done. A
//     handler that has done nothing for now concludes its claim with
//     [idempotency.NothingDone].
//   - Set-Cookie, Authorization, WWW-Authenticate and Proxy-Authenticate are never
//     stored.
//   - If Redis is down when the handler finishes, the response is still sent, and
//     recorded later.
//
// # Cost
//
// The gate reads the body before the handler, which can read it again. It holds up to
// MaxBody and MaxResponse bytes for each request. It costs a round trip before the
// handler and one after it, another for each third of the lease that the handler takes,
// and one for a replay. Mount it inside the gates that authenticate and limit.
//
// # Panics
//
// Idempotent panics at wiring on a nil or zero guard, a nil principal, impossible
// options, and Headers that are never stored. Nil options are the defaults; options are
// copied.
func Idempotent(guard *idempotency.Guard, principal Key, opts *IdempotentOptions) Gate {
	if guard == nil {
		panic("gate.Idempotent: the guard is nil; make one with idempotency.New")
	}
	guard.Name() // panics on one that nothing made
	if principal == nil {
		panic("gate.Idempotent: the principal is nil; say who sends a request, or Everyone")
	}
	var own IdempotentOptions
	if opts != nil {
		own = *opts
	}
	g := &idempotent{
		guard: guard, principal: principal, opts: own,
		headers: mustStorable("Idempotent", own.Headers),
		methods: mustMethods(own.Methods),
		print:   own.mustPrint(),
		answers: answers{render: own.Render, onError: own.OnError},
	}
	guard, err := guard.WithFail(own.Fail)
	if err != nil {
		panic("gate.Idempotent: IdempotentOptions.Fail: " + err.Error())
	}
	g.begin = guard.Begin
	if own.Wait != 0 {
		g.begin = mustWait("Idempotent", guard.WithWait, own.Wait).Await
	}
	if own.Key == nil {
		g.opts.Key = idempotencyKey
		if len(g.methods) == 0 {
			g.methods = []string{"POST", "PATCH"}
		}
	}
	g.opts.MaxResponse = mustSize("MaxResponse", own.MaxResponse, defaultMaxResponse)
	return g
}

// Everyone is the same key for all requests, for example for a limit on all clients
// together. As the principal of [Idempotent] it says that there are no principals: a
// client that knows or guesses a key gets the answer that is stored under it.
func Everyone(Request) (string, error) { return "everyone", nil }

// IdempotencyScope returns the key under which idempotency.Guard knows a request of
// [Idempotent]. It is the argument of the guard's Inspect, Resolve and Forget. The principal
// and the key are what the gate's keys return; a header field Idempotency-Key is without
// its quotes. The path is as it was sent.
func IdempotencyScope(principal, method, path, key string) string {
	var b strings.Builder
	for _, part := range []string{principal, method, path} {
		b.WriteString(strconv.Itoa(len(part)))
		b.WriteByte(':')
		b.WriteString(part)
	}
	b.WriteString(key)
	return b.String()
}

type idempotent struct {
	guard     *idempotency.Guard
	begin     func(ctx context.Context, key, fingerprint string) (idempotency.Answer, error)
	principal Key
	opts      IdempotentOptions
	methods   []string
	headers   storable
	print     func(Request) (string, error)
	answers   answers
}

func (g *idempotent) Enter(r Request) Pass {
	if g.opts.Skip != nil && g.opts.Skip(r) || len(g.methods) > 0 && !slices.Contains(g.methods, r.Method()) {
		return Pass{}
	}
	key, err := subject(r, g.opts.Key)
	switch {
	case errors.Is(err, ErrMissing) && g.opts.Optional:
		return Pass{}
	case err != nil:
		return g.keyless(r, err)
	}
	principal, err := subject(r, g.principal)
	if err != nil {
		return g.answers.refuse(r, unknown(err))
	}
	print, err := g.print(r)
	if err != nil {
		return g.answers.refuse(r, err)
	}
	scope := IdempotencyScope(principal, r.Method(), r.Path(), key)
	if own, ok := idempotency.FromContext(r.Context()); ok && own.By(g.guard) && own.Key() == scope && own.Err() == nil {
		return g.again(r)
	}
	answer, err := g.begin(r.Context(), scope, print)
	switch {
	case err != nil:
		return g.refused(r, err)
	case answer.Done:
		return g.replay(r, answer.Result)
	}
	claim := answer.Claim
	if why := claim.Unguarded(); why != nil {
		g.answers.tellBefore(r, why, func() { _ = claim.Conclude(r.Context(), idempotency.NothingDone()) })
	}
	ctx, ending := watch(claim.Detached())
	return Pass{Context: ctx, Capture: g.opts.MaxResponse, Leave: g.leaving(ending, r, claim)}
}

// again answers a request that comes through the gate a second time from its own handler:
// it would wait for itself. What the handler has done is unknown.
func (g *idempotent) again(r Request) Pass {
	g.answers.fault(r, fmt.Errorf("%w: a request came through its own gate.Idempotent a second time", ErrWiring))
	reply := g.answers.reply(r, &Denial{Kind: KindFault})
	return Pass{Reply: &reply}
}

// keyless answers a request without a usable key.
func (g *idempotent) keyless(r Request, err error) Pass {
	refused, ok := asRefusal(err)
	if !ok || refused.status != 400 {
		return g.answers.refuse(r, err)
	}
	kind := KindKeyInvalid
	if refused.missing {
		kind = KindKeyMissing
	}
	return g.answers.deny(r, Denial{Kind: kind, Title: refused.title})
}

// unknown makes a 401 from the error of a principal that is missing and says nothing
// more.
func unknown(err error) error {
	if refused, ok := asRefusal(err); ok && refused.missing && refused.status == 400 {
		return Refuse(401, "The request does not say who sends it")
	}
	return err
}

func (g *idempotent) refused(r Request, err error) Pass {
	var kind Kind
	switch {
	case errors.Is(err, idempotency.ErrInDoubt):
		kind = KindInDoubt
		g.answers.tell(r, err)
	case errors.Is(err, idempotency.ErrInFlight):
		kind = KindInFlight
	case errors.Is(err, idempotency.ErrMismatch):
		kind = KindKeyReused
	case errors.Is(err, idempotency.ErrNoResult):
		kind = KindDone
	case errors.Is(err, idempotency.ErrUnreadable):
		kind = KindDone
		g.answers.tell(r, err)
	default:
		return g.answers.unavailable(r, err, KindNotBegun)
	}
	return g.answers.deny(r, Denial{Kind: kind})
}

func (g *idempotent) replay(r Request, result []byte) Pass {
	reply, err := decodeReply(result)
	if err != nil {
		return g.refused(r, errors.Join(idempotency.ErrUnreadable, err))
	}
	reply.Header = append(reply.Header, Field{Name: fieldReplayed, Value: "true"})
	return Pass{Reply: &reply}
}

// leaving returns a Leave that records the outcome of the request, whatever became of its
// client.
func (g *idempotent) leaving(ending *ending, r Request, claim *idempotency.Claim) func(*Reply) {
	asked := Request(nil)
	if g.answers.onError != nil {
		kept := snapshotOf(r)
		kept.ctx = claim.Context()
		asked = kept
	}
	return func(reply *Reply) {
		outcome := idempotency.Unknown()
		defer func() { // also if Replay panics
			g.answers.conclude(context.Background(), asked, func(ctx context.Context) error {
				err := claim.Conclude(ctx, outcome) // nothing, if the handler has concluded the claim
				if err == nil && errors.Is(claim.Err(), idempotency.ErrInDoubt) {
					err = idempotency.ErrInDoubt
				}
				return err
			})
		}()
		if !ending.gaveUp(reply) {
			outcome = g.outcome(reply)
		}
	}
}

// outcome is what an answer says about the work that was done.
func (g *idempotent) outcome(reply *Reply) idempotency.Outcome {
	stands := concludes(reply)
	if g.opts.Replay != nil && reply != nil && reply.Status >= 200 && !reply.Refused {
		stands = g.kept(reply)
	}
	switch stands {
	case doneNothing:
		return idempotency.NothingDone()
	case doneUnknown:
		return idempotency.Unknown()
	case doneUnstored:
		return idempotency.DoneWithout()
	}
	if stored := encodeReply(*reply, g.headers); stored != nil {
		return idempotency.DoneWith(stored)
	}
	return idempotency.DoneWithout()
}

func (g *idempotent) kept(reply *Reply) conclusion {
	switch {
	case g.opts.Replay(reply):
		return doneStored
	case reply.Status < 400:
		return doneUnstored
	case reply.Status < 500:
		return doneNothing
	}
	return doneUnknown
}
