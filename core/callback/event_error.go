package callback

import (
	"context"
	"fmt"
)

// EventError is the error about one event that Options.OnError gets. Err is an error or a
// panic of the handler, a rejection, a claim that was lost, a lock of Options.Serialize that
// was not had, a result that Redis did not confirm, an event that is in doubt,
// [ErrAnotherDelivery] or [ErrNoOrder]. errors.Is and errors.As look into Err.
type EventError struct {
	Provider string // Preset.Name
	*Event          // what the handler gets: its Key is what guard.Resolve takes
	Err      error
}

// Error names the provider and the reason, and nothing of the Event. The reason itself may
// name it.
func (e *EventError) Error() string {
	return fmt.Sprintf("callback: an event of %s: %v", e.Provider, e.Err)
}

// Unwrap returns Err.
func (e *EventError) Unwrap() error { return e.Err }

func (e *Endpoint) tellOf(ctx context.Context, event *Event, err error) {
	e.tell(ctx, &EventError{Provider: e.preset.Name, Event: event, Err: err})
}
