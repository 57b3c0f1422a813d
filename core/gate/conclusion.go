package gate

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

// keeps reports whether an answer with this status stands: 200 to 499, but for the
// statuses that depend on who asks or when, since the same request may get another answer
// later.
func keeps(status int) bool {
	switch status {
	case 401, 403, 408, 425, 429:
		return false
	}
	return status >= 200 && status <= 499
}
