// Package labels names what a store tells for metrics, with a bounded number of names, so that those of
// contrib/prometheus and contrib/otel are the same.
package labels

import (
	"context"
	"strings"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// Other stands for the names and policies for which there is no room.
const Other = "_other"

// Labels are what an event is counted by.
type Labels struct {
	Primitive store.Primitive
	Name      string
	Policy    string
	Outcome   store.Outcome
	Class     Class
	Change    bool
}

// Of are the labels of an event, with its own name and policy.
func Of(e *store.Event) Labels {
	return Labels{Primitive: e.Primitive, Name: e.Name, Policy: e.Policy, Outcome: e.Outcome, Class: classOf(e), Change: e.Change}
}

// Degraded reports whether the decision was made without Redis.
func (l Labels) Degraded() bool {
	return l.Class != None && (l.Outcome == store.Granted || l.Outcome == store.Denied)
}

// Shadow reports whether it is what a shadow policy says beside the decision.
func (l Labels) Shadow() bool { return l.Outcome == store.ShadowDenied }

// Result is the outcome as a value of a label: in_doubt.
func (l Labels) Result() string { return strings.ReplaceAll(string(l.Outcome), " ", "_") }

// Class is the class of an event's error.
type Class uint8

// The classes.
const (
	None Class = iota // Redis answered
	NotExecuted
	MaybeExecuted
	Configuration
	Failed
	Canceled
	DeadlineExceeded
	Unknown // of another kind, or an answer that came too late
)

var classes = [...]string{
	"", "not_executed", "maybe_executed", "configuration", "failed", "canceled", "deadline_exceeded",
	"_OTHER", // as OpenTelemetry has it for error.type
}

// String is the class as a value of a label, and empty for None.
func (c Class) String() string { return classes[c] }

func classOf(e *store.Event) Class {
	switch e.Class { // an event has the sentinel itself
	case nil:
		if e.Outcome == store.Failed {
			return Unknown
		}
		return None
	case script.ErrNotExecuted:
		return NotExecuted
	case script.ErrMaybeExecuted:
		return MaybeExecuted
	case script.ErrConfiguration:
		return Configuration
	case script.ErrFailed:
		return Failed
	case context.Canceled:
		return Canceled
	case context.DeadlineExceeded:
		return DeadlineExceeded
	}
	return Unknown
}
