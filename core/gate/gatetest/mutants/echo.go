package main

var echoBugs = []bug{
	{
		"echolimit/middleware.go", "Method, pass.Reply)\n\t\treturn nil", "Method, pass.Reply)\n\t\treturn next(c)",
		"the handler runs although the gate has replied",
	},
	{
		"echolimit/middleware.go", "c.SetRequest(outer.WithContext(pass.Context))", "_ = outer.WithContext(pass.Context)",
		"gates and handlers inside do not get the gate's context",
	},
	{
		"echolimit/middleware.go", "\t\t\tc.SetRequest(outer)\n", "",
		"the gate's context stays on the request",
	},
	{
		"echolimit/middleware.go", "gatehttp.HandBack(outer, c.Request())", "",
		"the server does not find the temporary files to remove",
	},
	{
		"echolimit/middleware.go", "reply, err = recorded(", "reply, _ = recorded(",
		"middleware outside does not see the handler's error",
	},
	{
		"echolimit/writer.go", "\t\tc.Error(err)\n", "",
		"an error is not rendered inside: Leave does not see the answer",
	},
	{
		"echolimit/writer.go", "outer = sealed{outer}", "_ = sealed{outer}",
		"Echo renders an error a second time",
	},
	{
		"echolimit/writer.go", "\tif !c.Response().Committed {\n\t\tc.Error(err)\n\t}", "\tc.Error(err)",
		"an error is rendered behind an answer that was written",
	},
	{
		"echolimit/writer.go", "return nil, err", "return rec.Reply(), err",
		"an error left to middleware outside is taken for an empty 200",
	},
	{
		"echolimit/writer.go", "	defer func() { response.Writer = outer }()\n", "",
		"the writer stays wrapped",
	},
	{
		"echolimit/writer.go", "response.Writer = rec.Wrap(outer)", "_ = rec.Wrap(outer)",
		"the handler writes past the recorder",
	},
	{
		"echolimit/request.go", "\treturn q.c.Param(name)\n", "\treturn gatehttp.Param(q.Route(), q.Path(), name)\n",
		"a parameter is not the one the handler gets",
	},
	{
		"echolimit/request.go", `name = "*"`, `_ = "*"`,
		"the wildcard's value is not found",
	},
	{
		"echolimit/request.go", "return pattern(q.c.Path())", "return q.c.Path()",
		"a route is written Echo's way",
	},
	{
		"echolimit/request.go", "q.c.Get(echo.ContextKeyHeaderAllow) != nil", "false",
		"a request with the wrong method is said to have a route",
	},
	{
		"echolimit/request.go", "value := q.c.Get(name); value != nil", "value := q.c.Get(name); false",
		"what middleware stored in Echo's context is not found",
	},
	{
		"echolimit/middleware.go", "recorded(c, pass.Capture, next)", "recorded(c, 0, next)",
		"an answer that is to be kept is not captured",
	},
	{
		"echolimit/middleware.go", "recorded(c, pass.Capture, next)", "recorded(c, 1<<40, next)",
		"more of an answer is captured than was asked for",
	},
	{
		"echolimit/writer.go", "\treturn rec.Reply(), err\n", "\treturn nil, err\n",
		"what an error was rendered to is taken for nothing, and done again",
	},
}
