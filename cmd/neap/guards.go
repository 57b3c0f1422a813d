package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/script"
)

type guardGroup struct {
	Show    guardShow    `cmd:"" help:"Show what is known of a key."`
	Resolve guardResolve `cmd:"" help:"Say how a run in doubt ended."`
	Forget  guardForget  `cmd:"" help:"Forget a key, so that the next request runs."`
	Doubt   guardDoubt   `cmd:"" help:"List the keys whose runs are in doubt, or whose process is gone."`
}

// guarded is a key of a guard on the command line.
type guarded struct {
	Name      string `arg:"" help:"The guard's name."`
	Key       string `arg:"" help:"The key: what the service gave to Begin or Do, Claim.Key, a hash as Redis has it (#…), or with --principal the client's Idempotency-Key."`
	Principal string `help:"For a request behind gate.Idempotent: its principal as the gate writes it, such as 'header:x-account=alice' or 'everyone'."`
	Method    string `default:"POST" help:"The request's method, with --principal."`
	Path      string `help:"The request's path as it was on the wire, with --principal."`
}

// text is the key as the guard's calls want it.
func (g *guarded) text() (string, error) {
	switch {
	case g.Principal == "" && g.Path == "":
		return g.Key, nil
	case g.Principal == "" || g.Path == "":
		return "", usage(errors.New("--principal and --path go together: give both, or the whole key"))
	}
	principal, err := written(g.Principal)
	if err != nil {
		return "", usagef("--principal %q: %w", g.Principal, err)
	}
	return gate.IdempotencyScope(principal, g.Method, g.Path, g.Key), nil
}

// guardLine is what is known of a key.
type guardLine struct {
	Name    string `json:"name"`
	Key     string `json:"key"`
	State   string `json:"state"`
	Attempt int64  `json:"attempt"`
	Fence   int64  `json:"fence"`
	Lease   int64  `json:"lease_ms"`
	Expires int64  `json:"expires_ms"`
	Size    int    `json:"result_bytes"`
}

// open is the guard, and what it knows of the key.
func (g *guarded) open(ctx context.Context, a *app, retention time.Duration) (*idempotency.Guard, guardLine, error) {
	key, err := g.text()
	if err != nil {
		return nil, guardLine{}, err
	}
	_, st, err := a.begin(ctx)
	if err != nil {
		return nil, guardLine{}, err
	}
	guard, err := idempotency.New(st, g.Name, idempotency.Retry{}, &idempotency.Options{Retention: retention})
	if err != nil {
		return nil, guardLine{}, usage(err)
	}
	r, err := guard.Inspect(ctx, key)
	state := string(r.State)
	if r.State == idempotency.None {
		state = "unknown"
	}
	return guard, guardLine{g.Name, key, state, r.Attempt, r.Fence, r.Lease.Milliseconds(), r.Expires.Milliseconds(), r.Size}, err
}

// unreadable is the state of a key with a record that is not neap's.
const unreadable = "unreadable"

func (g guardLine) known() bool { return g.State != "unknown" }

// says is the state for people.
func (g guardLine) says() string {
	if g.State == string(idempotency.Pending) && g.Lease == 0 {
		return "pending, and its process is gone"
	}
	return g.State
}

// confirm asks, and looks that the key is then as it was: an answer takes a person time.
func (g guardLine) confirm(ctx context.Context, a *app, guard *idempotency.Guard, yes bool, question string) error {
	if err := a.confirm(ctx, yes, g.Key+" is "+g.says()+". "+question); err != nil || yes {
		return err
	}
	now, err := guard.Inspect(ctx, g.Key)
	switch {
	case g.State == unreadable && errors.Is(err, script.ErrFailed):
		err = nil
	case err == nil && (now.Fence != g.Fence || string(now.State) != g.State):
		err = errChanged
	}
	return err
}

type guardShow struct{ guarded }

func (g *guardShow) Run(ctx context.Context, a *app) error {
	_, r, err := g.open(ctx, a, 0)
	if err != nil {
		return err
	}
	err = a.show(r, func(w *page) {
		if !r.known() {
			w.linef("Nothing is known of %s.", r.Key)
			return
		}
		w.row("STATE", "ATTEMPT", "LAPSES IN", "FORGOTTEN IN", "RESULT", "FENCE")
		w.row(r.says(), r.Attempt, duration(r.Lease), duration(r.Expires), size(int64(r.Size)), strconv.FormatInt(r.Fence, 10))
	})
	if err == nil && !r.known() {
		err = not
	}
	return err
}

type guardResolve struct {
	guarded

	NothingDone bool          `name:"nothing-done" xor:"outcome" help:"Nothing was done: the next request runs."`
	Done        bool          `xor:"outcome" help:"It was done, and there is no result to give again: further requests get a 409, or ErrNoResult."`
	Result      string        `xor:"outcome" placeholder:"FILE" help:"It was done, and this is its result; - is standard input. A guard with Options.EncryptionKeys cannot read it: use --done there."`
	Status      int           `help:"With --result: the file is the body of a response of this status, as gate.Idempotent gives again."`
	ContentType string        `name:"content-type" default:"application/json" help:"The Content-Type of the response."`
	Retention   time.Duration `default:"24h" help:"How long it is remembered. Give the guard's Options.Retention."`
	Yes         bool          `short:"y" help:"Do not ask."`
}

func (g *guardResolve) Run(ctx context.Context, a *app) error {
	outcome, means, err := g.outcome(ctx, a)
	if err != nil {
		return err
	}
	guard, r, err := g.open(ctx, a, g.Retention)
	if err != nil {
		return err
	}
	found := r.known()
	if found {
		if err := r.confirm(ctx, a, guard, g.Yes, "Note that "+means+"?"); err != nil {
			return err
		}
		err = guard.Resolve(ctx, r.Key, outcome)
	}
	return a.told(err, done{g.Name, r.Key, found, []string{}}, "It is noted that "+means+".", "Nothing is known of "+r.Key+".")
}

// outcome is what the flags say, and what that means.
func (g *guardResolve) outcome(ctx context.Context, a *app) (idempotency.Outcome, string, error) {
	switch {
	case g.NothingDone:
		return idempotency.NothingDone(), "nothing was done", nil
	case g.Done:
		return idempotency.DoneWithout(), "it was done, without a result", nil
	case g.Result == "":
		return idempotency.Outcome{}, "", usage(errors.New("what became of it? Give --nothing-done, --done or --result"))
	case g.Result == "-" && !g.Yes:
		return idempotency.Outcome{}, "", usage(errors.New("--result - reads standard input, so the answer cannot come from there: give --yes"))
	}
	var result []byte
	var err error
	if g.Result == "-" {
		var interrupted bool
		result, interrupted, err = typed(ctx, func() ([]byte, error) { return io.ReadAll(a.in) })
		if interrupted {
			return idempotency.Outcome{}, "", &failure{exitLeft, errors.New("nothing was changed: interrupted before the end of standard input")}
		}
	} else {
		result, err = os.ReadFile(g.Result)
	}
	switch {
	case err != nil:
		return idempotency.Outcome{}, "", usagef("--result: %w", err)
	case g.Status != 0 && (g.Status < 200 || g.Status > 599):
		return idempotency.Outcome{}, "", usagef("--status is %d: use 200 to 599", g.Status)
	case strings.ContainsFunc(g.ContentType, unicode.IsControl):
		return idempotency.Outcome{}, "", usagef("--content-type is %q: use a media type", g.ContentType)
	case g.Status != 0:
		result = gate.StoredReply(gate.Reply{Status: g.Status, Header: []gate.Field{{Name: "Content-Type", Value: g.ContentType}}, Body: result})
	}
	return idempotency.DoneWith(result), "it was done, with a result of " + size(int64(len(result))), nil
}

type guardForget struct {
	guarded

	Yes bool `short:"y" help:"Do not ask."`
}

func (g *guardForget) Run(ctx context.Context, a *app) error {
	guard, r, err := g.open(ctx, a, 0)
	if errors.Is(err, script.ErrFailed) {
		r.State, err = unreadable, nil
	}
	if err != nil {
		return err
	}
	found := r.known()
	if found {
		if err := r.confirm(ctx, a, guard, g.Yes, "Forget it, so that the next request runs?"); err != nil {
			return err
		}
		found, err = guard.Forget(ctx, r.Key)
	}
	return a.told(err, done{g.Name, r.Key, found, []string{}}, r.Key+" is forgotten.", "Nothing is known of "+r.Key+".")
}
