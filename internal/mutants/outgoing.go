package main

var outgoingBugs = []source{
	{"core/outgoing/outgoing.go", []bug{
		{"a call without a slot keeps its permit",
			"_ = d.Refund(context.WithoutCancel(ctx)) //", "_ = d //"},
		{"a hold that Redis did not confirm is forgotten",
			"\tif err := c.onHold(ctx, subject); err != nil {\n\t\treturn nil, err\n\t}\n", ""},
		{"a call in line is made although the subject is on hold",
			"err = c.onHold(ctx, subject) //", "err = nil //"},
		{"a hold ends with the call that learned of it",
			"c.of.limiter.Hold(context.WithoutCancel(ctx), c.subject", "c.of.limiter.Hold(ctx, c.subject"},
		{"a decision without Redis is told to nobody",
			"\t\tonError(cause)\n", ""},
		{"a denial without Redis is told to nobody",
			"\t\tcause = denied.Decision.Cause\n", "\t\t_ = denied\n"},
		{"a call is in flight for ever after a panic of onError",
			"if !told && call != nil {", "if !told && call == nil {"},
		{"a call that does not wait for its permits is denied",
			"if c.opts.Wait > 0 {", "if false {"},
		{"a settlement that was given up is told to nobody",
			"undo.WithDropped(ctx, c.onError), used)", "undo.WithDropped(ctx, func(error) {}), used)"},
		{"Redis is not told again of a hold by a caller that went away",
			"c.limiter.Hold(context.WithoutCancel(ctx), subject, rest)", "c.limiter.Hold(ctx, subject, rest)"},
	}},
	{"core/outgoing/refusals.go", []bug{
		{"requests that are refused together put a partner on hold for long",
			"if known && began.Before(was.at) {", "if known && false {"},
		{"a partner that refuses again is on hold for a second",
			"max(2*was.hold, leastHold)", "max(was.hold, leastHold)"},
	}},
}
