package gate

// BlockOptions are the options of [Block]. Their functions must be safe for concurrent use; their
// panics propagate to the request.
type BlockOptions struct {
	// Render makes the answer to a request that is refused, as that of
	// [RateLimitOptions]; nil is problem details.
	Render func(Denial) Reply
	// OnError hears of an error of the key that is no refusal; nil hears nothing.
	OnError func(Request, error)
}

const titleBlocked = "Forbidden"

// Block refuses the requests whose subject by the key is on the list, with a 403. It sends nothing to
// Redis. An error of the key is answered as other gates do: one that [Refuse] made as it says,
// [ErrMissing] with a 400, any other with a 500. Mount Block outside of the limits, so that what it
// refuses counts for none of them.
//
// It panics at wiring on a nil list and a nil key; nil options are the defaults, and options are copied.
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
		return g.answers.deny(r, Denial{Status: 403, Title: titleBlocked})
	}
	return Pass{}
}
