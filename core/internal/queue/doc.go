// Package queue sends the calls of many callers to one server in batches.
//
// While a batch is in flight, callers wait in a [Queue], and the next batch takes all of
// them. Batches are spread over the round trip: each leaves an eighth of a round trip
// after the one before. So a caller waits little for its batch, and batches do not return
// together. A lone caller makes its call by itself (SendLone of the [Server]).
//
// A call is sent at most once. If its caller leaves while the call still waits, the call
// does not run. While the server is late, or has not answered a batch, the queue sends
// only probes. So there are never more calls in doubt than are in flight.
//
// Arrivals and answers drive the queue. A goroutine that sends ends with its batch. A
// goroutine that probes ends soon after the last caller has left. A queue has one timer.
// It ends within a budget of the last call, or later if the process has no CPU to spare.
package queue
