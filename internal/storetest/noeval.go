package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// WithoutEval makes calls by a client whose user may run only the scripts that an admin
// has loaded, with the permissions of the documented line. Each call must work for it. On
// a server that has lost the scripts, each must return that error at once. makes is called
// when the scripts are loaded, and they are again when WithoutEval returns.
func WithoutEval(t *testing.T, makes func(rdb *redis.Client, prefix string) map[string]func(context.Context) error) {
	t.Helper()
	srv := redistest.NewStandalone(t)
	user := redistest.NewUser(t, redistest.LoadedRules(), srv)
	srv.LoadScripts(t)
	for name, call := range makes(srv.Client(t, func(o *redis.Options) { o.Username = user }), srv.Prefix(t)) {
		srv.LoadScripts(t)
		if err := call(t.Context()); err != nil {
			t.Errorf("%s with the scripts loaded: got %v, want no error", name, err)
		}
		if err := srv.Admin(t).ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		stood, began := redistest.Witness(t), time.Now()
		if err := call(t.Context()); !errors.Is(err, script.ErrConfiguration) || !strings.Contains(err.Error(), "'eval'") {
			t.Errorf("%s without its script: got %v, want %v that names eval", name, err, script.ErrConfiguration)
		}
		if took := time.Since(began); took > 8*time.Second+stood() {
			t.Errorf("%s without its script: got the error after %v, want it within 8s: it was tried again", name, took)
		}
	}
	srv.LoadScripts(t)
}
