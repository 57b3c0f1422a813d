package gate

// conclusion is what the answer to a request says about the work that was done.
type conclusion uint8

const (
	// doneUnknown follows a panic, an answer left to middleware outside, or a 5xx: any
	// part of the work may have been done.
	doneUnknown conclusion = iota
	// doneNothing follows a refusal, by a gate or by a status: the work has not begun,
	// and the client may send the request again.
	doneNothing
	// doneStored follows a final answer that is stored, and sent again to later requests.
	doneStored
	// doneUnstored follows a final answer that is not stored.
	doneUnstored
)

// concludes gets what Leave is called with. If a handler took the connection over before
// a status was sent, it uses the connection for something. That counts as done, too.
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

// keeps reports whether an answer with this status is final. These are 200 to 499, except
// the statuses that depend on who asks or when: the same request may get another answer
// later.
func keeps(status int) bool {
	switch status {
	case 401, 403, 408, 425, 429:
		return false
	}
	return status >= 200 && status <= 499
}
