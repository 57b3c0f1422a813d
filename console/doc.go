// Package console is a page that shows what neap does in this process at the moment: how many
// requests each policy admits and denies, which servers answer, which locks, claims and reservations are
// held here. Mount it in your service, where operators alone come:
//
//	mux.Handle("/debug/neap/", console.Handler(rdb, isOperator, nil))
//
// It counts the events of the store and reads its gauges, so that it shows one process, and
// sends nothing to Redis while somebody looks. Only a look-up and an action do, each for
// one subject that the operator has typed. It has no goroutine of its own: an open page
// is one request.
//
// The page is read-only unless [Options] says what may be acted upon. It is in English and
// Chinese.
package console
