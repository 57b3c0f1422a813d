package gate

// Endpoint answers every request itself: it is the whole handler of a route, such as
// those that package callback makes. An adapter's Handler mounts it. Serve is called
// concurrently; the Request is valid until it has returned.
type Endpoint interface {
	Serve(Request) Reply
}
