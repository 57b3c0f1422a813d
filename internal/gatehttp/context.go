package gatehttp

import "net/http"

// HandBack copies to a request what its copy, made for the handler's context, has got
// since then. The server and middleware outside look for the form, whose temporary files
// they remove, and for the route, which they need for their metrics.
func HandBack(outer, inner *http.Request) {
	outer.MultipartForm, outer.Pattern = inner.MultipartForm, inner.Pattern
}
