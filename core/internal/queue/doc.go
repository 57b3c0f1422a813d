// Package queue sends the calls of many callers to one server in batches.
//
// While a batch is in flight, callers wait in a [Queue], and the next batch takes
// all of them along. Batches are spread over the round trip: each leaves an eighth
// of it after the one before, so a caller waits little for its batch, and batches do
// not return together. A lone caller makes its call by itself ([Queue.BeginDirect]).
//
// A call is sent at most once. One that was still waiting when its caller left did not run.
// While the server is late, or has left a batch without an answer, the queue sends only
// probes. So the calls in doubt are at most those in flight.
//
// Arrivals and answers drive the queue. A goroutine that sends ends with its batch, and one
// that probes ends soon after the last caller has left. The one timer of a queue ends within a budget of the last
// call, or later if the process has no CPU to spare.
package queue
