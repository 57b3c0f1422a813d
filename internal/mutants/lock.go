package main

// lockBugs are those of AcquireAll and DoAll.
var lockBugs = []source{
	{"core/lock/all.go", []bug{
		{"each key has a wait of its own",
			"\t\t\trest.wait = max(time.Until(end), time.Millisecond)\n", "\t\t\t_ = end\n"},
		{"a lock that was lost while another was waited for is returned",
			"\tif err := all.Err(); err != nil {\n\t\treturn nil, err\n\t}\n\tkept = true", "\tkept = true"},
		{"callers that wait are overtaken",
			"if !l.queues.waits(b.key, b.queue) { //", "if true { //"},
		{"locks stay held after a panic",
			"\tdefer func() {\n\t\tfor _, lost := range held.release(ctx, 0) {\n\t\t\tif isLoss(lost) {\n\t\t\t\terr = errors.Join(err, lost)\n\t\t\t}\n\t\t}\n\t}()\n\treturn fn(held.Context(), held)",
			"\terr = fn(held.Context(), held)\n\tfor _, lost := range held.release(ctx, 0) {\n\t\tif isLoss(lost) {\n\t\t\terr = errors.Join(err, lost)\n\t\t}\n\t}\n\treturn err"},
		{"FromContext finds one of several locks",
			"context.WithCancelCause(ls.parent)", "context.WithCancelCause(context.WithoutCancel(ls.locks[0].Context()))"},
		{"Release says how the first lock ended alone",
			"errors.Join(ls.release(ctx, 0)...)", "ls.release(ctx, 0)[0]"},
	}},
}
