package gate

var errTrailer = Refuse(400, "The request is keyed by a header field that its trailer may have brought; send it without a trailer")

// unsure reports whether the framework has lines of a field that Header leaves out,
// because a trailer or middleware may have written them. No key may do without: what
// is left may be the client's, and what middleware wrote is missing.
func unsure(r Request, name string) bool {
	mixed, ok := Unwrap(r).(interface{ Unsure(name string) bool })
	return ok && mixed.Unsure(name)
}
