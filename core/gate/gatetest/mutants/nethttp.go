package main

// nethttpBugs are mutants of nethttp and in internal/gatehttp, which Gin and
// Echo share.
var nethttpBugs = []bug{
	{
		"nethttp/middleware.go", "gatehttp.Apply(w.Header(), pass.Header)", "_ = gatehttp.Apply",
		"the fields of a Pass are not sent",
	},
	{
		"nethttp/middleware.go", "gatehttp.WriteReply(w, r.Method, pass.Reply)",
		"gatehttp.WriteReply(w, r.Method, pass.Reply)\nnext.ServeHTTP(w, r)",
		"the handler runs although the gate has replied",
	},
	{
		"nethttp/middleware.go", "run(next, rec.Wrap(w), r, pass)", "run(next, w, r, pass)",
		"the handler writes past the recorder",
	},
	{
		"nethttp/middleware.go", "gatehttp.NewRecorder(w.Header(), r.Method, pass.Capture)",
		`gatehttp.NewRecorder(w.Header(), "GET", pass.Capture)`,
		"Leave sees a body that HEAD does not have",
	},
	{
		"nethttp/middleware.go", "inner := r.WithContext(pass.Context)", "inner := r",
		"the handler does not get the gate's context",
	},
	{
		"nethttp/middleware.go", "inner := r.WithContext(pass.Context)",
		"inner := r.WithContext(pass.Context)\n*r = *inner",
		"the gate's context leaks to middleware outside",
	},
	{
		"nethttp/middleware.go", "defer gatehttp.HandBack(r, inner)", "",
		"nobody removes the temporary files of a form",
	},
	{
		"nethttp/middleware.go", "mux, _ := next.(*http.ServeMux)", "var mux *http.ServeMux",
		"a gate around a ServeMux knows no route",
	},
	{
		"nethttp/middleware.go", `gatehttp.RequireGate("nethttp.Middleware", g)`, "",
		"a nil gate is mounted",
	},
	{
		"nethttp/middleware.go", "gatehttp.WriteReply(w, r.Method, &reply)", "_ = reply",
		"an endpoint's answer is not sent",
	},
	{
		"nethttp/request.go", `return strings.TrimSuffix(pattern, "{$}")`, "return pattern",
		"routes are not written alike",
	},
	{
		"nethttp/request.go", "return gatehttp.Param(route(pattern), canonical(q.HTTP.URL.EscapedPath()), name)",
		"return gatehttp.Param(route(pattern), canonical(q.HTTP.URL.Path), name)",
		"a parameter is decoded twice",
	},
	{
		"nethttp/request.go", "canonical(q.Path())", "q.HTTP.URL.Path",
		"what a wildcard matched is not found behind http.StripPrefix",
	},
	{
		"nethttp/request.go", "value != \"\" && q.agrees(route, path)", "value != \"\"",
		"what http.StripPrefix leaves is taken for the path that the mux matched",
	},
	{
		"nethttp/native.go", "switch q := gate.Unwrap(q).(type) {", "switch q := q.(type) {",
		"Context and Key fail behind a Chain",
	},
	{
		"internal/gatehttp/request.go", "path, _ := SplitTarget(q.HTTP.RequestURI)",
		`path, _ := q.HTTP.URL.EscapedPath(), ""`,
		"the gate sees the path that middleware has rewritten",
	},
	{
		"internal/gatehttp/request.go", "return q.HTTP.Host }",
		`return append(q.HTTP.Header["X-Forwarded-Host"], q.HTTP.Host)[0] }`,
		"X-Forwarded-Host is believed",
	},
	{
		"internal/gatehttp/request.go", "return q.HTTP.Header.Values(name)",
		"return []string{q.HTTP.Header.Get(name)}",
		"only the first line of a field is seen, and one where there is none",
	},
	{
		"internal/gatehttp/header.go", "h.Add(f.Name, f.Value)", "h.Set(f.Name, f.Value)",
		"an added field replaces the lines before it",
	},
	{
		"internal/gatehttp/header.go", "Add: i > 0}", "Add: i < 0}",
		"Leave sees one line of Set-Cookie",
	},
	{
		"internal/gatehttp/reply.go", `h["Content-Type"] = nil`, "",
		"net/http guesses the Content-Type of a Reply",
	},
	{
		"internal/gatehttp/reply.go", `h.Set("Content-Length", strconv.Itoa(len(sent.Body)))`,
		"_ = strconv.Itoa",
		"HEAD does not have the Content-Length of GET",
	},
	{
		"core/gate/reply.go", "r.Status < 200 || r.Status > 999", "r.Status < 100 || r.Status > 999",
		"an informational status ends nothing",
	},
	{
		"core/gate/denial.go", "\treply.Refused = true\n", "",
		"a refusal is taken for an answer of the handler",
	},
	{
		"internal/gatehttp/reply.go", "\t\th[refused(sent.Status)] = nil\n", "",
		"a gate outside takes a refusal for an answer of the handler",
	},
	{
		"internal/gatehttp/header.go", "lines == nil && strings", "lines != nil && strings",
		"a refusal that was dropped stands for the handler that ran afterwards",
	},
	{
		"core/gate/chain.go", "r = nested{Request: r, ctx: p.Context}", "",
		"the gates of a Chain do not find each other",
	},
	{
		"core/gate/chain.go", "\t\t\tall.Context = p.Context\n", "",
		"a gate inside a Chain does not find those of the Chain",
	},
	{
		"core/gate/admission.go", "reply == nil || reply.Status == 0 || reply.Refused || a.ending.gaveUp(reply) || a.gate.opts.Count(reply.Status)",
		"reply != nil && (reply.Status == 0 || reply.Refused || a.ending.gaveUp(reply) || a.gate.opts.Count(reply.Status))",
		"a panic is a way round a limit of failures",
	},
	{
		"core/gate/admission.go", "reply.Status == 0 || ", "",
		"a connection taken over is a way round a limit",
	},
	{
		"core/gate/admission.go", "reply.Refused || ", "",
		"a limit of failures gives back what a gate further in refuses with a 200",
	},
	{
		"core/gate/admission.go", " || a.ending.gaveUp(reply)", "",
		"a client that hangs up gets round a limit of failures",
	},
	{
		"core/gate/ratelimit.go", "limit.NewContext(r.Context(), d)", "r.Context()",
		"the handler does not find the decision",
	},
	{
		"core/gate/giveup.go", " || e.further.Load()", "",
		"a handler whose lock was lost gets round a limit of failures",
	},
	{
		"internal/gatehttp/recorder.go", "rec.refused = marked && mark == nil", "rec.refused = marked && (mark == nil || len(mark) > 0)",
		"what a handler copies into its answer makes a refusal of it",
	},
	{
		"core/gate/admission.go", "context.WithoutCancel(a.ending.ctx)", "context.Context(a.ending.ctx)",
		"a client that goes away loses the refund of a success",
	},
	{
		"internal/gatehttp/recorder.go", "status < 200 && status != http.StatusSwitchingProtocols", "status < 100",
		"103 is taken for the status",
	},
	{
		"internal/gatehttp/recorder.go", "rec.header = rec.live.Clone()", "rec.header = rec.live",
		"Leave sees fields that were set too late to be sent",
	},
	{
		"internal/gatehttp/recorder.go", "rec.cut || rec.length > rec.capture || rec.short()", "rec.cut || rec.short()",
		"a body longer than Capture is said to be whole",
	},
	{
		"internal/gatehttp/recorder.go", `rec.header.Set("Content-Type", http.DetectContentType(rec.start))`, "",
		"Leave does not see the Content-Type that net/http guesses",
	},
	{
		"internal/gatehttp/writer.go", "rec.Flushed()\n", "",
		"Flush goes past the recorder",
	},
	{
		"internal/gatehttp/writer.go", "rec.Hijacked()\n", "",
		"Hijack goes past the recorder",
	},
	{
		"internal/gatehttp/writer.go", "httpsnoop.Wrap(surface(w), ", "httpsnoop.Wrap(w, ",
		"Flush and Hijack behind an outer writer's Unwrap go past the recorder",
	},
	{
		"internal/gatehttp/writer.go", "httpsnoop.Wrap(surface(w), ", "httpsnoop.Wrap(unwrapper{w}, ",
		"the recorder has no Flush and no CloseNotify",
	},
	{
		"internal/gatehttp/leave.go", "left = true", "",
		"Leave is called twice",
	},
	{
		"internal/gatehttp/leave.go", "leave(nil)", "_ = left",
		"Leave is not called after a panic",
	},
	{
		"internal/gatehttp/leave.go", "if !left {", "if v := recover(); !left && v != nil {",
		"a panic ends in the adapter",
	},
	{
		"internal/gatehttp/body.go", "\t\tr.Body = b\n", "",
		"the handler does not find the body that a gate has read",
	},
	{
		"internal/gatehttp/body.go", "b.rewind()", "",
		"middleware between two gates uses the body up",
	},
	{
		"internal/gatehttp/body.go", "return missing(r, len(b.ahead))", "return nil",
		"a body that others have read is taken for an empty one",
	},
	{
		"internal/gatehttp/body.go", "return gate.ErrBodyBroken", "return missing(r, len(b.ahead))",
		"a broken body is taken for a whole or a consumed one",
	},
	{
		"internal/gatehttp/body.go", "b.readAhead(max+1, r.ContentLength)", "b.readAhead(max, r.ContentLength)",
		"a body that is too large is cut off",
	},
	{
		"core/gate/concurrency.go", "return Pass{Header: fields, Leave: func(*Reply) { _ = slot.Release(ctx) }}",
		"_ = slot.Release(ctx)\nreturn Pass{Header: fields}",
		"a slot is given back before its handler runs",
	},
	{
		"core/gate/concurrency.go", "func(*Reply) { _ = slot.Release(ctx) }",
		"func(r *Reply) { if r != nil { _ = slot.Release(ctx) } }",
		"a handler that panics keeps its slot",
	},
	{
		"core/gate/exclusive.go", "return Pass{Context: ctx, Leave: g.leaving(ending, r, held)}",
		"g.leaving(ending, r, held)(nil)\n_ = ctx\nreturn Pass{Context: r.Context()}",
		"a lock is released before its handler runs",
	},
	{
		"core/gate/exclusive.go", "return Pass{Context: ctx, Leave: g.leaving(ending, r, held)}",
		"leave := g.leaving(ending, r, held)\ncontext.AfterFunc(r.Context(), func() { leave(nil) })\nreturn Pass{Context: ctx, Leave: leave}",
		"a lock is released when the client goes away, while the handler runs",
	},
	{
		"core/gate/exclusive.go", "return func(reply *Reply) {\n", "return func(reply *Reply) {\nif reply == nil {\nreturn\n}\n",
		"a handler that panics keeps its lock",
	},
	{
		"core/gate/exclusive.go", "if err := held.Release(ctx); err != nil {\n\t\t\tg.answers.tell(asked, err)\n\t\t}",
		"go func() {\ntime.Sleep(20 * time.Millisecond)\nif err := held.Release(ctx); err != nil {\ng.answers.tell(asked, err)\n}\n}()",
		"a client that has read its answer finds its lock held",
	},
	{
		"core/gate/exclusive.go", "watch(held.Context())", "watch(r.Context())",
		"a handler is not told that its lock was lost, and does not find it",
	},
	{
		"core/gate/exclusive.go", "watch(held.Context())", "watch(context.WithoutCancel(held.Context()))",
		"a handler finds its lock, and is not told that it was lost",
	},
	{
		"core/gate/exclusive.go", "g.acquire(r.Context(), subject)", "g.acquire(context.WithoutCancel(r.Context()), subject)",
		"the context of a handler does not end with its client",
	},
	{
		"core/gate/exclusive.go", "g.acquire(r.Context(), subject)", "g.acquire(r.Context(), subject[:1])",
		"requests of different keys exclude each other",
	},
	{
		"core/gate/exclusive.go", "g.acquire = mustWait(\"Exclusive\", locker.WithWait, opts.Wait).Acquire", "_ = mustWait(\"Exclusive\", locker.WithWait, opts.Wait).Acquire",
		"a request that may wait is refused",
	},
	{
		"core/gate/exclusive.go", ", RetryAfter: retryHeld}", "}",
		"a client is not told when to ask for the lock again",
	},
	{
		"core/gate/exclusive.go", "\t\t\tg.answers.tell(asked, err)\n", "\t\t\t_ = asked\n",
		"nobody hears of a lock that was lost while the handler ran",
	},
	{
		"nethttp/middleware.go", "r.Method, pass.Capture)", "r.Method, 0)",
		"an answer that is to be kept is not captured",
	},
	{
		"nethttp/middleware.go", "r.Method, pass.Capture)", "r.Method, 1<<40)",
		"more of an answer is captured than was asked for",
	},
	{
		"internal/gatehttp/recorder.go", "if rec.alone(err) {", "if false {",
		"a client that goes away while it is answered does not find the answer later",
	},
	{
		"core/gate/conclusion.go", "case 401, 403, 408, 425, 429:", "case 401, 403:",
		"a refusal that is over soon is given for a day",
	},
	{
		"core/gate/conclusion.go", "case keeps(reply.Status), reply.Status < 200 && reply.Partial:", "case keeps(reply.Status):",
		"what a connection was taken over for is done again",
	},
	{
		"core/gate/storedreply.go", "\tif r.Partial {\n\t\treturn nil\n\t}\n", "",
		"half an answer is given for a whole one",
	},
	{
		"core/gate/idempotent.go", "\tclaim.Detach()\n", "",
		"the context of a handler ends with its client, who will be back",
	},
	{
		"core/gate/idempotent.go", "watch(claim.Context())", "watch(r.Context())",
		"a handler is not told that its claim was lost",
	},
	{
		"core/gate/idempotent.go", "IdempotencyScope(principal, r", "IdempotencyScope(principal[:1], r",
		"one client is given the answer to another",
	},
	{
		"core/gate/idempotent.go", "r.Path(), key)", `"/", key)`,
		"a key stands for all paths",
	},
	{
		"core/gate/idempotent.go", "return fingerprint(r, g.opts.MaxBody)", "return fingerprintOf(r, nil)",
		"another request under a key is given the first answer",
	},
	{
		"core/gate/idempotent.go", "g.begin = mustWait(\"Idempotent\", guard.WithWait, own.Wait).Await", "_ = mustWait(\"Idempotent\", guard.WithWait, own.Wait).Await",
		"a request that may wait is refused",
	},
	{
		"core/gate/idempotent.go", "\treply.Header = append(reply.Header, Field{Name: fieldReplayed, Value: \"true\"})\n", "\t_ = fieldReplayed\n",
		"an answer that is given again is not marked",
	},
	{
		"core/gate/idempotent.go", "\treturn func(reply *Reply) {\n", "\treturn func(reply *Reply) {\n\t\tif reply == nil {\n\t\t\treturn\n\t\t}\n",
		"a handler that panics keeps its claim",
	},
	{
		"core/gate/conclusion.go", "case reply.Refused:", "case reply.Refused && reply.Partial:",
		"what a gate further in refuses is in doubt",
	},
	{
		"core/gate/idempotent.go", "err := claim.Conclude(context.Background(), outcome)", "var err error\n\t\t\tgo claim.Conclude(context.Background(), outcome)",
		"nobody hears of an answer that could not be stored",
	},
	{
		"core/gate/reserve.go", "watch(stock.NewContext(r.Context(), own))", "watch(r.Context())",
		"a handler does not find its reservation",
	},
	{
		"core/gate/reserve.go", "if o.item = untagged(o.item); o.item", "if o.item",
		"an item is not found by its name",
	},
	{
		"core/gate/reserve.go", "Confirm: g.opts.Confirm, ", "",
		"what is to be sold at once is on a lease",
	},
	{
		"internal/address/address.go", "return netip.AddrPortFrom(addr, 0), true", "_ = addr\nreturn netip.AddrPort{}, false",
		"a peer that middleware has replaced with a bare address has none",
	},
	{
		"core/gate/reserve.go", "if reply == nil || reply.Status >= 400", "if reply != nil && reply.Status >= 400",
		"a handler that panics has sold its unit",
	},
	{
		"core/gate/reserve.go", "reply.Status >= 400", "reply.Status >= 500",
		"a handler that refuses has sold its unit",
	},
	{
		"core/gate/reserve.go", " || gaveUp {", " {_ = gaveUp",
		"a handler that gave up with its client has sold its unit",
	},
	{
		"core/gate/reserve.go", "gaveUp := ending.gaveUp(reply)", "gaveUp := client.Err() != nil",
		"a client that goes away loses the unit of a handler that succeeds",
	},
	{
		"core/gate/reserve.go", "if own.Concluded() {", "if false {",
		"what a handler has confirmed is taken back when its answer fails",
	},
	{
		"core/gate/reserve.go", "if err := conclude(client); err != nil {\n\t\t\tg.answers.tell(asked, err)\n\t\t}",
		"_ = asked\n\t\tgo conclude(client)",
		"a client that has read its answer finds its unit not sold",
	},
	{
		"core/gate/reserve.go", "d.Type, d.Title = typeYours, ", "d.Type, d.Title = typeSoldOut, ",
		"a buyer who has one is told that all are sold",
	},
	{
		"internal/gatehttp/body.go", "\t\tif r.ContentLength > max {\n", "\t\tif false {\n",
		"the client sends a body that is too long before it is told so",
	},
	{
		"core/gate/keyrequest.go", "percentFree(r.Param(name))", "r.Param(name)",
		"a parameter that is spelled in another way is another key",
	},
}
