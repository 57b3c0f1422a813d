package gatehttp

import "net/http"

// HandBack gives a request what a copy of it, made for the handler's context,
// has got since and the server and middleware outside look for: the form, whose
// temporary files are to be removed, and the route for their metrics.
func HandBack(outer, inner *http.Request) {
	outer.MultipartForm, outer.Pattern = inner.MultipartForm, inner.Pattern
}
