// Package wire is what the test of upgrades and its workers say to each other: a line of
// JSON for each call, and a line for its answer. Workers of two versions read the same
// lines, so a field is only added, and never changes its meaning.
package wire

// Call is one call of the library. Durations are in milliseconds.
type Call struct {
	ID int64
	// Op names the call, such as "lock.acquire".
	Op string
	// As names what the call gets, for later calls of the same process. Of is such a name.
	As, Of string
	Conf   Conf

	Key   string // subject, key, item or job
	Buyer string
	Order string // the id of a reservation or of a restock
	N     int64  // cost, quantity, units or tick
	For   int64  // how long a ban lasts, or until when an item is open
	Print string // fingerprint of a guard
	How   string // outcome of a claim, or what to do about a run of Once
	Bytes []byte
}

// Conf is how a primitive is made. A worker makes one for each Conf, and keeps it.
type Conf struct {
	Name string
	// Secret has the store hide subjects.
	Secret bool

	Policies []Policy
	Prepaid  int64 // the most that is charged ahead
	Slots    int64 // the limit on requests in flight

	Lease, Wait, RetryDelay int64
	Owner                   string   // of locks
	InDoubt                 string   // retry, reject, or reconcile, which finds nothing done
	Seals                   []string // names of the keys that seal results
}

// Policy is a policy of a limiter.
type Policy struct {
	Kind  string // bucket, window, sliding, log, calendar
	Name  string
	Limit int64 // Rate of a bucket
	Per   int64 // Window of the others
	Burst int64
	Debt  int64
	Zone  string // of a calendar, by the month

	Kept, Shadow, PerRequest bool

	Lease int64  // of estimates; 0: none
	Ban   *int64 // denials in an hour that begin a ban of an hour
}

// Answer is what came of a Call.
type Answer struct {
	ID int64
	// Word is which error it was, and empty for none. Text is the error's own text.
	Word, Text string

	OK      bool // granted, done, found, opened or ran
	N       int64
	Fence   int64
	Attempt int64
	State   string
	Counts  []int64
	Bytes   []byte
	Names   []string
	Header  map[string][]string
}
