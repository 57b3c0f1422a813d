package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/upgrade/wire"
	"github.com/neap-go/neap/nethttp"
)

var guardOps = map[string]op{
	"guard.begin": func(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
		g, err := w.guard(c)
		if err != nil {
			return err
		}
		run, err := g.Begin(ctx, c.Key, c.Print)
		return w.begun(c, a, run, err)
	},
	"guard.await": func(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
		g, err := w.guard(c)
		if err != nil {
			return err
		}
		run, err := g.Await(ctx, c.Key, c.Print)
		return w.begun(c, a, run, err)
	},
	"guard.conclude": func(ctx context.Context, w *worker, c *wire.Call, _ *wire.Answer) error {
		claim, err := got[*idempotency.Claim](w, c)
		if err == nil {
			err = claim.Conclude(ctx, outcomes(c))
			w.forget(c)
		}
		return err
	},
	"guard.renew": func(ctx context.Context, w *worker, c *wire.Call, _ *wire.Answer) error {
		claim, err := got[*idempotency.Claim](w, c)
		if err == nil {
			err = claim.Renew(ctx)
		}
		return err
	},
	"guard.resolve": func(ctx context.Context, w *worker, c *wire.Call, _ *wire.Answer) error {
		g, err := w.guard(c)
		if err == nil {
			err = g.Resolve(ctx, c.Key, outcomes(c))
		}
		return err
	},
	"guard.inspect": func(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
		g, err := w.guard(c)
		if err != nil {
			return err
		}
		r, err := g.Inspect(ctx, c.Key)
		a.State, a.Attempt, a.Fence, a.N = string(r.State), r.Attempt, r.Fence, int64(r.Size)
		return err
	},
	"guard.forget": func(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
		g, err := w.guard(c)
		if err == nil {
			a.OK, err = g.Forget(ctx, c.Key)
		}
		return err
	},
	"http.post":     post,
	"callback.send": deliver,
}

func (w *worker) guard(c *wire.Call) (*idempotency.Guard, error) {
	return one(w, "guard", &c.Conf, func() (*idempotency.Guard, error) {
		o := &idempotency.Options{
			Lease: span(c.Conf.Lease), Wait: span(c.Conf.Wait), RetryDelay: span(c.Conf.RetryDelay),
			Retention: 8 * 24 * time.Hour,
		}
		var policy idempotency.Policy = idempotency.Retry{}
		switch c.Conf.InDoubt {
		case "reject":
			policy = idempotency.Reject{}
		case "reconcile":
			policy = idempotency.Reconcile{Find: func(context.Context, *idempotency.Claim) (idempotency.Outcome, error) {
				return idempotency.NothingDone(), nil
			}}
		}
		for _, name := range c.Conf.Seals {
			secret := sha256.Sum256([]byte(name))
			o.EncryptionKeys = append(o.EncryptionKeys, idempotency.EncryptionKey{ID: name, Secret: secret[:]})
		}
		return idempotency.New(w.store(&c.Conf), c.Conf.Name, policy, o)
	})
}

// begun tells of a run: OK says that it was done before.
func (w *worker) begun(c *wire.Call, a *wire.Answer, run idempotency.Answer, err error) error {
	if err != nil {
		return err
	}
	a.OK, a.Bytes = run.Done, run.Result
	if run.Claim != nil {
		a.Fence, a.Attempt = run.Claim.Fence(), run.Claim.Attempt()
		w.keep(c, run.Claim)
	}
	return nil
}

func outcomes(c *wire.Call) idempotency.Outcome {
	switch c.How {
	case "done":
		return idempotency.DoneWith(c.Bytes)
	case "done without":
		return idempotency.DoneWithout()
	case "nothing":
		return idempotency.NothingDone()
	}
	return idempotency.Unknown()
}

// post sends a request through a gate to a handler, which answers with Bytes. OK says
// that the handler ran.
func post(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
	g, err := w.guard(c)
	if err != nil {
		return err
	}
	h := nethttp.Middleware(gate.Idempotent(g, gate.ByHeader("X-User"), &gate.IdempotentOptions{Headers: []string{"X-Order"}}))(
		http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			a.OK = true
			rw.Header().Set("Content-Type", "application/octet-stream")
			rw.Header().Set("X-Order", c.Order)
			rw.Header().Add("Link", "<a>; rel=self")
			rw.Header().Add("Link", "<b>; rel=next")
			rw.WriteHeader(http.StatusCreated)
			_, _ = rw.Write(c.Bytes)
		}))
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/orders?at=shop", bytes.NewReader([]byte(c.Print)))
	r.Header.Set("X-User", c.Buyer)
	r.Header.Set("Idempotency-Key", `"`+c.Key+`"`)
	r.Header.Set("Content-Type", "text/plain")
	said := httptest.NewRecorder()
	h.ServeHTTP(said, r)
	a.N, a.Bytes, a.Header = int64(said.Code), said.Body.Bytes(), said.Header()
	return nil
}

// deliver sends a callback, as GitHub signs one. OK says that the handler ran.
func deliver(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
	g, err := w.guard(c)
	if err != nil {
		return err
	}
	const secret = "the secret of the webhook"
	verify, err := callback.VerifyGitHub(secret)
	if err != nil {
		return err
	}
	e, err := callback.New(callback.GitHub(), g, verify, func(_ context.Context, e *callback.Event) error {
		a.OK, a.State, a.Attempt = true, e.Key, e.Attempt
		return nil
	}, nil)
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(c.Bytes)
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/callbacks/github", bytes.NewReader(c.Bytes))
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	r.Header.Set("Content-Type", "application/json")
	said := httptest.NewRecorder()
	nethttp.Handler(e).ServeHTTP(said, r)
	a.N = int64(said.Code)
	return nil
}
