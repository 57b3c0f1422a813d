package gate

// BlockOptions are the options of [Block]. Their functions must be safe for concurrent
// use; their panics propagate to the request.
type BlockOptions struct {
	// Render makes the answer to a request that is refused, as Render of
	// [RateLimitOptions] does. Nil sends problem details.
	Render func(Denial) Reply
	// OnError is told of an error of the key that is not a refusal. With nil, such errors
	// are dropped, and the log tells of the first.
	OnError func(Request, error)
}

// Block returns a gate that refuses a request with a 403 if its subject is on the list.
// It sends nothing to Redis. Mount Block outside the limits, so that what it refuses
// counts for none of them.
//
// An error of the key is answered as other gates answer it: one that [Refuse] made as it
// says, [ErrMissing] with a 400, any other with a 500.
//
// Block panics at wiring on a nil list and on a nil key. Nil options are the defaults;
// options are copied.
func Block(list *List, key Key, opts *BlockOptions) Gate {
	list.must("Block")
	mustKey("Block", key)
	g := &block{list: list, key: key}
	if opts != nil {
		g.answers = answers{render: opts.Render, onError: opts.OnError}
	}
	return g
}

type block struct {
	list    *List
	key     Key
	answers answers
}

func (g *block) Enter(r Request) Pass {
	s, err := subject(r, g.key)
	switch {
	case err != nil:
		return g.answers.refuse(r, err)
	case g.list.Has(s):
		return g.answers.deny(r, Denial{Kind: KindBlocked})
	}
	return Pass{}
}
