package usecases

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/neap-go/neap/core/store"
)

// Serve serves until the server fails or ctx ends, as that of signal.NotifyContext does at a
// SIGTERM. Then requests have some time to end. After that it gives prepaid permits back, and
// waits for what neap does in the background.
func Serve(ctx context.Context, server *http.Server, on net.Listener, some time.Duration, st *store.Store) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(on) }()
	var faults []error
	select {
	case err := <-failed:
		faults = append(faults, err)
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), some)
	defer cancel()
	if err := server.Shutdown(ending); err != nil {
		faults = append(faults, err, server.Close())
	}
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer end()
	return errors.Join(append(faults, st.Drain(ctx))...)
}
