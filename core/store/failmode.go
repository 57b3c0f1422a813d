package store

import "fmt"

// FailMode is how a limit decides while Redis cannot: because it is slow, gone or full,
// or refuses the client. The zero value is FailLocal, and constructors refuse other values
// than these. A decision of FailLocal or FailOpen is marked Degraded and has
// its Cause. The end of the caller's own context is no such reason: the call then returns
// its error.
type FailMode uint8

const (
	// FailLocal decides by the same policies in this process, beginning with nothing
	// taken: N instances together then admit up to N times the limit. With
	// limit.Options.Instances they begin with what Redis last reported, and divide what is
	// left. If a limit.Limiter has no Instances, its first such decision is logged to
	// slog.Default, once in a process, with the remedy. Bans and holds that this process
	// knows of stay in force (limit.WithBan, limit.Limiter.Hold). A limit on requests in
	// flight begins with the slots that this process holds.
	FailLocal FailMode = iota
	// FailOpen admits every request, except those of a subject that this process knows to
	// be banned (limit.WithBan) or on hold (limit.Limiter.Hold). The figures of an
	// admission are unknown, and zero.
	FailOpen
	// FailClosed admits no request: the call returns the error. HTTP clients get a 503,
	// because the fault is not theirs.
	FailClosed
)

// String returns the mode's name.
func (m FailMode) String() string {
	switch m {
	case FailLocal:
		return "FailLocal"
	case FailOpen:
		return "FailOpen"
	case FailClosed:
		return "FailClosed"
	}
	return fmt.Sprintf("FailMode(%d)", uint8(m))
}
