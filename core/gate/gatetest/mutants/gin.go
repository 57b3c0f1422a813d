package main

var ginBugs = []bug{
	{
		"ginlimit/middleware.go", "c.Abort()", "_ = c",
		"Gin runs the handlers behind a gate that has replied",
	},
	{
		"ginlimit/middleware.go", "	c.Writer.WriteHeaderNow()\n", "",
		"Gin adds a 404 of its own to a reply without a body",
	},
	{
		"ginlimit/middleware.go", "c.Request = outer.WithContext(pass.Context)", "_ = outer.WithContext(pass.Context)",
		"gates and handlers inside do not get the gate's context",
	},
	{
		"ginlimit/middleware.go", "\t\t\tc.Request = outer\n", "",
		"the gate's context stays on the request",
	},
	{
		"ginlimit/middleware.go", "gatehttp.HandBack(outer, c.Request)", "",
		"the server does not find the temporary files to remove",
	},
	{
		"ginlimit/writer.go", "	defer func() { c.Writer = outer }()\n", "",
		"the writer stays wrapped",
	},
	{
		"ginlimit/writer.go", "outer, errs := c.Writer, len(c.Errors)", "outer, errs := c.Writer, 0",
		"an error from before the gate is taken for one that is left to render",
	},
	{
		"ginlimit/writer.go", "len(c.Errors) > errs", "len(c.Errors) < errs",
		"an error for middleware outside to render is taken for an empty 200",
	},
	{
		"ginlimit/writer.go", " || c.FullPath() == \"\"", "",
		"Gin's own 404 page is taken for an empty answer",
	},
	{
		"ginlimit/writer.go", "return w.rec.Wrote([]byte(s), n, err)", "return n, err",
		"WriteString bypasses the recorder",
	},
	{
		"ginlimit/writer.go", "return w.rec.Wrote(p, n, err)", "return n, err",
		"Write bypasses the recorder",
	},
	{
		"ginlimit/writer.go", "	w.rec.Flushed()\n	w.ResponseWriter", "	w.ResponseWriter",
		"Flush bypasses the recorder",
	},
	{
		"ginlimit/writer.go", "		w.rec.Hijacked()\n", "",
		"Hijack bypasses the recorder",
	},
	{
		"ginlimit/writer.go", "	w.rec.Commit(w.Status())\n	w.rec.Commit(http.StatusOK)", "	w.rec.Commit(http.StatusOK)",
		"the status that Gin keeps until the first byte is lost",
	},
	{
		"ginlimit/writer.go", "	w.rec.Commit(w.Status())\n	w.rec.Commit(http.StatusOK)", "	w.rec.Commit(w.Status())",
		"a 103 is taken for the status",
	},
	{
		"ginlimit/writer.go", "outer.Written() && !w.used", "false",
		"what Engine.HandleContext writes below the recorder is taken for nothing",
	},
	{
		"ginlimit/writer.go", "if outer.Size() > 0 {", "{",
		"a handler that gives up behind Engine.HandleContext is taken for an answer",
	},
	{
		"ginlimit/writer.go", "func (w *writer) Unwrap()", "func (w *writer) unwrap()",
		"http.ResponseController does not find the connection",
	},
	{
		"ginlimit/request.go", "return pattern(q.c.FullPath())", "return q.c.FullPath()",
		"a route is written Gin's way",
	},
	{
		"ginlimit/request.go", "\treturn q.c.Param(name)\n", "\treturn gatehttp.Param(q.Route(), q.Path(), name)\n",
		"a parameter is not the one the handler gets",
	},
	{
		"ginlimit/request.go", `strings.TrimPrefix(q.c.Param(wildcard(q.c.FullPath())), "/")`, `q.c.Param(wildcard(q.c.FullPath()))`,
		"a wildcard's value begins with Gin's slash",
	},
	{
		"ginlimit/request.go", "q.c.Get(key); ok", "q.c.Get(key); !ok",
		"what middleware stored in Gin's context is not found",
	},
	{
		"ginlimit/middleware.go", "recorded(c, pass.Capture, next)", "recorded(c, 0, next)",
		"an answer that is to be kept is not captured",
	},
	{
		"ginlimit/middleware.go", "recorded(c, pass.Capture, next)", "recorded(c, 1<<40, next)",
		"more of an answer is captured than was asked for",
	},
	{
		"ginlimit/middleware.go", "q.Context().Value(gin.ContextKey) != nil {", "false {",
		"what outlives a request reads the values of another",
	},
}
