package usecases

import (
	"log/slog"
	"net/http"

	"github.com/neap-go/neap/console"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/store"
)

// Watch mounts the console for those whom isOperator lets in.
func Watch(mux *http.ServeMux, st *store.Store, isOperator func(*http.Request) bool) {
	mux.Handle("/debug/neap/", console.Handler(st, isOperator, nil))
}

// Administer mounts one on which they may act, too.
func Administer(mux *http.ServeMux, st *store.Store, isAdmin func(*http.Request) bool, api *limit.Limiter, jobs *lock.Locker, payments *idempotency.Guard) {
	mux.Handle("/admin/neap/", console.Handler(st, isAdmin, &console.Options{
		Actions: console.Primitives{
			Limiters: []*limit.Limiter{api},
			Lockers:  []*lock.Locker{jobs},
			Guards:   []*idempotency.Guard{payments},
		},
		Acted: func(r *http.Request, a console.Action, err error) {
			slog.InfoContext(r.Context(), "console", "by", r.Header.Get("X-User"), "did", a.Do, "of", a.Name, "failed", err != nil)
		},
	}))
}
