package ask

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/store"
)

// Notify gives the end of a call to the observers of a store, with its duration and, if
// Redis did not answer, the class of its error.
func Notify(ctx context.Context, st *store.Store, e store.Event, began time.Time, err error) {
	if !st.Observed() {
		return
	}
	e.Duration = time.Since(began)
	if e.Outcome == store.Failed || e.Outcome == store.Canceled {
		e.Class = store.ClassOf(err)
	}
	st.Notify(ctx, e)
}
