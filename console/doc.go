// Package console is a page that shows what neap does in this process at the moment: how many
// requests each policy admits and denies, which servers answer, which locks, claims and reservations are
// held here. Mount it in your service, for operators alone:
//
//	mux.Handle("/debug/neap/", console.Handler(rdb, isOperator, nil))
//
// It counts the events of the store and reads its gauges. So it shows one process, and an open
// page asks Redis nothing. Only look-ups and actions do, each about one subject that the operator
// has typed. The page has no goroutine of its own: while it is open, it is one request.
//
// It shows figures alone unless [Options] says what may be looked up and acted upon. It is in
// English and Chinese.
package console
