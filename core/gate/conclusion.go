package gate

import "context"

// conclusion is what the answer to a request says of what was done for it.
type conclusion uint8

const (
	// doneUnknown is a panic, an answer left to middleware outside, or a 5xx: any
	// part of the work may have been done.
	doneUnknown conclusion = iota
	// doneNothing is a refusal, by a gate or a status: the work has not begun, and
	// the client may come again.
	doneNothing
	// doneStored is an answer that stands, and is given again.
	doneStored
	// doneUnstored is one that stands, and is not given again.
	doneUnstored
)

// concludes takes what Leave is called with. A connection that was taken over
// before it had a status is used for something: that stands, too.
func concludes(reply *Reply) conclusion {
	switch {
	case reply == nil:
		return doneUnknown
	case reply.Refused:
		return doneNothing
	case keeps(reply.Status), reply.Status < 200 && reply.Partial:
		return doneStored
	case reply.Status >= 400 && reply.Status <= 499:
		return doneNothing
	}
	return doneUnknown
}

// gaveUp says that a handler has returned without an answer because its request
// had ended: the client went away, or a deadline passed. Frameworks make an empty
// 200 of that. Any other answer is the handler's own, and means what it says,
// whether or not the client still listens.
func gaveUp(ctx context.Context, reply *Reply) bool {
	return ctx.Err() != nil && reply.Status == 200 && len(reply.Body) == 0 && !reply.Partial
}

// keeps says whether an answer with this status stands. Of 200 to 499 those do
// not that another attempt may well see changed although the request is the
// same: they are about who asks, or when.
func keeps(status int) bool {
	switch status {
	case 401, 403, 408, 425, 429:
		return false
	}
	return status >= 200 && status <= 499
}
