package gate

// Endpoint answers every request itself: it is the whole handler of a route. Package
// callback makes endpoints. An adapter's Handler mounts an Endpoint. The adapter calls
// Serve concurrently. The Request is valid until Serve has returned.
type Endpoint interface {
	Serve(Request) Reply
}
