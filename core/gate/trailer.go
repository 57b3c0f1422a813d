package gate

var errTrailer = Refuse(400, "The request is keyed by a header field that its trailer may have brought; send it without a trailer")

// unsure reports whether the framework has a field that Header leaves out, because
// a trailer or middleware may have written it.
func unsure(r Request, name string) bool {
	mixed, ok := Unwrap(r).(interface{ Unsure(name string) bool })
	return ok && mixed.Unsure(name)
}
