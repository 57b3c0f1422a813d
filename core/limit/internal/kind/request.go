package kind

import "time"

// Few is how many rules have their readings and cells on the stack, or in the same piece of memory
// as something else.
const Few = 4

// Request is a request for permits, and what a set answered to it.
type Request struct {
	Subject         string
	Cost            int64
	Peek            bool
	Token           string // names its estimates; empty if it has none
	Asked, Answered time.Time
	Readings        []Reading // one for each rule
}

// Asks returns the cost as scripts and models take it: below 0 for a question.
func (r *Request) Asks() int64 {
	if r.Peek {
		return -r.Cost
	}
	return r.Cost
}
