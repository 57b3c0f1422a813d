package main

var grpcBugs = []source{
	{"grpclimit/server.go", []bug{
		{"a handler runs after a denial", "return deny(ctx, &pass)", "_ = deny(ctx, &pass)"},
		{"a handler does not get the gate's context", "ctx = pass.Context", "_ = pass.Context"},
		{"a stream keeps its own context", "return handler(srv, withContext{stream, ctx})", "return handler(srv, withContext{stream, stream.Context()})"},
		{"a gate is not left after a panic", "defer func() { pass.Leave(left) }()\n\terr := handler(ctx)\n\tleft = replyOf(err)", "err := handler(ctx)\n\tleft = replyOf(err)\n\tpass.Leave(left)"},
		{"a call that succeeded looks failed", "case codes.OK:\n\t\treturn 200", "case codes.OK:\n\t\treturn 500"},
		{"a denial further in looks like an answer", "Partial: true, Refused: refused", "Partial: true, Refused: refused && false"},
		{"gates that only HTTP can answer for are taken", "if _, ok := statuses[k]; !ok {", "if _, ok := statuses[k]; !ok && false {"},
		{"a gate of one's own is taken", "if !known {", "if !known && false {"},
		{"a call that is allowed tells no fields", "setTrailer(ctx, pass.Header)", "_ = pass.Header"},
	}},
	{"grpclimit/denial.go", []bug{
		{"a client may try again what cannot succeed", `wait := status.New(code, d.Title), "-1"`, `wait := status.New(code, d.Title), "0"`},
		{"a client is told to come too early", "int64((after-1)/time.Millisecond)+1", "int64(after/time.Second)"},
		{"a denial does not say when to come again", "durationpb.New(after)}); err == nil", "durationpb.New(after)}); err == nil && false"},
		{"a refusal for want of credentials is another one", "d.Kind == gate.KindRefused {", "false {"},
		{"a limit says that the server is down", "gate.KindLimited:     codes.ResourceExhausted", "gate.KindLimited:     codes.Unavailable"},
		{"fields of HTTP stand in the trailer", "case onlyHTTP[name]:", "case false:"},
	}},
	{"grpclimit/request.go", []bug{
		{"a key reads no metadata", "return metadata.ValueFromIncomingContext(r.ctx, name)", "return nil"},
		{"a key gets no message", "return f(q.Context(), r.method, r.message)", "return f(q.Context(), r.method, nil)"},
	}},
	{"grpclimit/client.go", []bug{
		{"an Unavailable holds all processes back", "if st.Code() != codes.ResourceExhausted {", "if st.Code() == codes.OK {"},
		{"what the partner says is not heard", "c.answered(ctx, call, err)\n\t\treturn err", "return err"},
		{"a denial by neap is taken for the partner's", "if errors.Is(err, limit.ErrLimited) {", "if false {"},
		{"a call that panics stays in flight", "defer func() { c.end(ctx, method, call, answer, err) }()\n\t\terr = invoke", "err = invoke"},
		{"a stream that could not be opened stays in flight", "if opened = true; err != nil {", "if opened = true; false {"},
		{"a stream ends twice", "if ended.Swap(true) {", "if ended.Swap(true) && false {"},
		{"a denial has no status", "return &refused{err, st}", "_ = st\n\treturn err"},
		{"a caller that went away is told of an outage", "case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):", "case false:"},
		{"any number of calls is in flight", "Concurrency: c.opts.Concurrency, ", ""},
		{"errors are told to nobody", "\t\t\tc.opts.OnError(ctx, method, err)\n", ""},
		{"an estimate is never settled", "used = c.opts.Settle(ctx, method, answer, err)", "c.opts.Settle(ctx, method, answer, err)"},
	}},
}
