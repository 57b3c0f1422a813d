// Package wire is what the test of upgrades and its workers say to each other: a line of
// JSON for each call, and a line for its answer. Workers of two versions read the same
// lines, so fields may be added, and no field changes its meaning.
package wire

// Call is one call of the library. Durations are in milliseconds.
type Call struct {
	ID int64 `json:"id"`
	// Op names the call, such as "lock.acquire".
	Op string `json:"op"`
	// As names what the call gets, for later calls of the same process. Of is such a name.
	As   string `json:"as,omitempty"`
	Of   string `json:"of,omitempty"`
	Conf Conf   `json:"conf"`

	Key   string `json:"key,omitempty"` // subject, key, item or job
	Buyer string `json:"buyer,omitempty"`
	Order string `json:"order,omitempty"` // the id of a reservation or of a restock
	N     int64  `json:"n,omitempty"`     // cost, quantity, units or tick
	For   int64  `json:"for,omitempty"`   // how long a ban lasts, or until when an item is open
	Print string `json:"print,omitempty"` // fingerprint of a guard
	How   string `json:"how,omitempty"`   // outcome of a claim, or what to do about a run of Once
	Bytes []byte `json:"bytes,omitempty"`
}

// Conf is how a primitive is made. A worker makes one for each Conf, and keeps it.
type Conf struct {
	Name string `json:"name,omitempty"`
	// Secret has the store hide subjects.
	Secret bool `json:"secret,omitempty"`

	Policies []Policy `json:"policies,omitempty"`
	Prepaid  int64    `json:"prepaid,omitempty"` // the most that is charged ahead
	Slots    int64    `json:"slots,omitempty"`   // the limit on requests in flight

	Lease      int64    `json:"lease,omitempty"`
	Wait       int64    `json:"wait,omitempty"`
	RetryDelay int64    `json:"retryDelay,omitempty"`
	Owner      string   `json:"owner,omitempty"`   // of locks
	InDoubt    string   `json:"inDoubt,omitempty"` // retry, reject, or reconcile, which finds nothing done
	Seals      []string `json:"seals,omitempty"`   // names of the keys that seal results
}

// Policy is a policy of a limiter.
type Policy struct {
	Kind  string `json:"kind"` // bucket, window, sliding, log, calendar
	Name  string `json:"name,omitempty"`
	Limit int64  `json:"limit"`         // Rate of a bucket
	Per   int64  `json:"per,omitempty"` // Window of the others
	Burst int64  `json:"burst,omitempty"`
	Debt  int64  `json:"debt,omitempty"`
	Zone  string `json:"zone,omitempty"` // of a calendar, by the month

	Kept       bool `json:"kept,omitempty"`
	Shadow     bool `json:"shadow,omitempty"`
	PerRequest bool `json:"perRequest,omitempty"`

	Lease int64  `json:"lease,omitempty"` // of estimates; 0: none
	Ban   *int64 `json:"ban,omitempty"`   // denials in an hour that begin a ban of an hour
}

// Answer is what came of a Call.
type Answer struct {
	ID int64 `json:"id"`
	// Word is which error it was, and empty for none. Text is the error's own text.
	Word string `json:"word,omitempty"`
	Text string `json:"text,omitempty"`

	OK      bool                `json:"ok,omitempty"` // granted, done, found, opened or ran
	N       int64               `json:"n,omitempty"`
	Fence   int64               `json:"fence,omitempty"`
	Attempt int64               `json:"attempt,omitempty"`
	State   string              `json:"state,omitempty"`
	Counts  []int64             `json:"counts,omitempty"`
	Bytes   []byte              `json:"bytes,omitempty"`
	Names   []string            `json:"names,omitempty"`
	Header  map[string][]string `json:"header,omitempty"`
}
