package gate

var errTrailer = Refuse(400, "The trailer of the request may have brought the header field that it is keyed by; send the request without a trailer")

// unsure reports whether the framework has lines of a field that Header leaves out,
// because a trailer or middleware may have written them. No key may ignore that: the
// lines that are left may be the client's, and those that middleware wrote may be
// missing.
func unsure(r Request, name string) bool {
	mixed, ok := Unwrap(r).(interface{ Unsure(name string) bool })
	return ok && mixed.Unsure(name)
}
