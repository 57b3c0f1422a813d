package wire

// replies are the replies that a script gives.
type replies struct {
	number func(n int64) bool
	other  func(reply any) bool
}

// Replies returns a copy of the script with the replies that it gives beside errors.
// Package script documents it.
func (s *Script) Replies(number func(n int64) bool, other func(reply any) bool) *Script {
	own := *s
	own.replies = &replies{number, other}
	return &own
}

// errNotGiven is the error of a call whose reply its script never gives.
const errNotGiven replyError = "one that the script never gives: is the client really connected to Redis?"

// gives reports whether the script gives that number.
func (s *Script) gives(n int64) bool {
	return s.replies == nil || s.replies.number != nil && s.replies.number(n)
}

// check returns errNotGiven if a command has ended with a reply that its script never gives.
// Nothing but an error is the answer to a probe.
func (c *Command) check() error {
	s := c.text.script
	switch {
	case s == nil:
		return errNotGiven
	case c.told != nil, s.replies == nil: // a merged call has checked it
		return nil
	}
	reply := c.Val()
	n, is := reply.(int64)
	if is && s.gives(n) || !is && s.replies.other != nil && s.replies.other(reply) {
		return nil
	}
	return errNotGiven
}
