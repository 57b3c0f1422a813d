package main

var fiberBugs = []bug{
	{
		"fiberlimit/middleware.go", "\t\t\tsend(c, pass.Reply)\n\t\t\treturn nil", "\t\t\tsend(c, pass.Reply)\n\t\t\treturn next(c)",
		"the handler runs although the gate has replied",
	},
	{
		"fiberlimit/middleware.go", "\t\t\tc.SetUserContext(pass.Context)\n", "",
		"gates and handlers inside do not get the gate's context",
	},
	{
		"fiberlimit/request.go", "context.Context { return q.c.UserContext() }", "context.Context { return q.c.Context() }",
		"a gate does not find the context of those outside",
	},
	{
		"fiberlimit/middleware.go", "defer c.SetUserContext(outer)", "_ = outer",
		"the gate's context stays on the request",
	},
	{
		"fiberlimit/middleware.go", "\t\t\t\trender(c, err)\n", "",
		"an error is not rendered inside: Leave does not see the answer",
	},
	{
		"fiberlimit/middleware.go", "if c.App().ErrorHandler(c, err) != nil {", "if c.App().ErrorHandler(c, err); false {",
		"an error handler that fails leaves an empty 200",
	},
	{
		"fiberlimit/response.go", "if !f.Add {", "if false {",
		"a field that replaces stands beside the old one",
	},
	{
		"fiberlimit/response.go", "h.Add(f.Name, oneLine.Replace(f.Value))", "h.Add(f.Name, f.Value)",
		"a line break in a value begins another field",
	},
	{
		"fiberlimit/response.go", "if strings.ContainsAny(f.Name, \"\\r\\n\\t :\") {", "if false {",
		"a line break in a field name begins another field",
	},
	{
		"fiberlimit/response.go", "	response.Header.SetNoDefaultContentType(true)\n", "",
		"fasthttp adds a Content-Type to a reply without one",
	},
	{
		"fiberlimit/response.go", "		response.SetConnectionClose()\n", "",
		"a refused request's unread body is taken for the next request",
	},
	{
		"fiberlimit/response.go", "c.Locals(refusedKey{}, sent)", "_ = refusedKey{}",
		"a gate outside takes a refusal for an answer of the handler",
	},
	{
		"fiberlimit/response.go", "ok && carries(response, refusal)", "ok && refusal.Status == reply.Status",
		"a handler that was refused a part, and answers for itself with the same status, has not run",
	},
	{
		"fiberlimit/middleware.go", "c.Locals(refusedKey{}, nil)", "_ = refusedKey{}",
		"a refusal of a part stands for the next one, which has run",
	},
	{
		"fiberlimit/response.go", "case response.IsBodyStream():", "case false:",
		"a stream is read before it may run",
	},
	{
		"fiberlimit/response.go", "if c.Context().Hijacked() {", "if false {",
		"a connection taken over is said to have had a whole answer",
	},
	{
		"fiberlimit/response.go", "case c.Context().IsHead(), !gate.", "case !gate.",
		"HEAD is said to have a body",
	},
	{
		"fiberlimit/response.go", "bytes.Clone(body[:min(int64(len(body)), capture)])", "bytes.TrimSpace(body[:min(int64(len(body)), capture)])",
		"a captured body becomes that of another request",
	},
	{
		"fiberlimit/response.go", "\t\tsent.SetNoDefaultContentType(true)\n", "",
		"Leave sees a Content-Type that is not sent",
	},
	{
		"fiberlimit/request.go", "return string(header.Host())", "return strings.Clone(q.c.Hostname())",
		"X-Forwarded-Host is believed",
	},
	{
		"fiberlimit/request.go", "return strings.Clone(q.c.Method())", "return q.c.Method()",
		"a method becomes that of another request",
	},
	{
		"fiberlimit/request.go", "path, _ := gatehttp.SplitTarget(q.target())",
		"path := string(q.c.Request().URI().Path())",
		"a path is decoded, cleaned and rewritten",
	},
	{
		"fiberlimit/request.go", "target, _, _ := strings.Cut(string(q.c.Request().Header.RequestURI()), \"#\")",
		"target := string(q.c.Request().Header.RequestURI())",
		"a fragment that the handler does not see makes a new key",
	},
	{
		"core/gate/clientip.go", "from.trust(plain(r.RemoteAddr().Addr())) && unsure(r, forwardedFor)", "false",
		"a request of chunks whose address middleware has written is keyed by the proxy",
	},
	{
		"fiberlimit/header.go", "\treturn told < all\n", "\treturn told == 0 && all > 0\n",
		"an address that middleware adds is not seen in a request of chunks",
	},
	{
		"fiberlimit/body.go", "_, ok := native.BodyStream().(replayed); ok", "_, ok := native.BodyStream().(replayed); ok && false",
		"a key of Fiber's own takes from the handler the body that a gate has read",
	},
	{
		"fiberlimit/native.go", "keepTrailerAway(c.Request())", "_ = keepTrailerAway",
		"a key of Fiber's own that reads a streamed body sees the trailer",
	},
	{
		"fiberlimit/header.go", "n > 1 && sent[n-1] == string(kept):", "n < 0:",
		"a doubled Content-Type or User-Agent is not seen",
	},
	{
		"fiberlimit/request.go", "return cloned(value)", "return value",
		"a value that middleware stored becomes that of another request",
	},
	{
		"fiberlimit/native.go", "return strings.Clone(s), err", "return strings.TrimSpace(s), err",
		"a key becomes that of another request: alice is now bobby",
	},
	{
		"fiberlimit/body.go", "body := q.c.Request().Body()", "body := q.c.Body()",
		"a gate is given the body decompressed",
	},
	{
		"fiberlimit/body.go", "bytes.Clone(body), nil", "bytes.TrimSpace(body), nil",
		"a body becomes that of another request",
	},
	{
		"fiberlimit/body.go", "	src.Reader = detached(src.Reader)\n\tnative.SetBodyStream(replayed{r.Body}, length)\n",
		"	native.SetBodyStream(replayed{r.Body}, length)\n",
		"the handler does not get the rest of a body that was too large for the gate",
	},
	{
		"fiberlimit/body.go", "err = io.ErrUnexpectedEOF", "_ = err",
		"a streamed body that broke off is not said to be broken",
	},
	{
		"fiberlimit/route.go", "return strings.Clone(q.c.Params(name))", "return q.c.Params(name)",
		"a parameter becomes that of another request",
	},
	{
		"fiberlimit/route.go", "strings.Clone(q.c.Params(name))", "gatehttp.Param(q.Route(), q.Path(), name)",
		"a parameter is not the one the handler gets",
	},
	{
		"fiberlimit/route.go", "return !hasUseField || reflect.ValueOf(route).Elem().FieldByIndex(useField.Index).Bool()",
		"return false",
		"the prefix of app.Use is said to be the route",
	},
	{
		"fiberlimit/route.go", "name = wildcard(q.c.Route())", "name = \"*\"",
		"the value of a plus parameter is not found",
	},
	{
		"fiberlimit/middleware.go", "captured(c, pass.Capture)", "captured(c, 0)",
		"an answer that is to be kept is not captured",
	},
	{
		"fiberlimit/middleware.go", "captured(c, pass.Capture)", "captured(c, 1<<40)",
		"more of an answer is captured than was asked for",
	},
	{
		"fiberlimit/body.go", "s.missing < 0 && hungUp(s.Reader)", "false",
		"a chunked body that broke off between two chunks is taken for a whole one",
	},
	{
		"fiberlimit/header.go", "slices.Equal(now[:n], sent):\n\t\treturn sent", "slices.Equal(now[:n], sent):\n\t\treturn now",
		"a gate is told of a trailer behind the header's own lines",
	},
	{
		"fiberlimit/header.go", "\treturn nil\n}\n\n// unmerged", "\treturn now\n}\n\n// unmerged",
		"a gate is told of a field that the trailer alone has",
	},
	{
		"fiberlimit/body.go", "\tundo()\n", "\t_ = undo\n",
		"a trailer brings back what middleware has stripped",
	},
	{
		"fiberlimit/native.go", "defer swap(&c.Request().Header, q.untrailed(q.sure()))()", "_ = q.untrailed",
		"a key of Fiber's own sees the trailer",
	},
	{
		"fiberlimit/trailer.go", "(length == 0 || length == -1)", "length < -2",
		"a trailer reaches keys when middleware makes the header anew",
	},
	{
		"fiberlimit/middleware.go", "return ctx.Value(mark{}) != nil", "return false",
		"what outlives a request reads the values of another",
	},
}
