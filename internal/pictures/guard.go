package main

const (
	noRecord  = "no record"
	pending   = "pending"
	leaseOver = "lease over"
	asking    = "asking"
	free      = "free"
	done      = "done"
	inDoubt   = "in doubt"
	begun     = "begun"
)

var (
	begunStates = []string{pending, leaseOver, asking}
	recorded    = append([]string{free, done, inDoubt}, begunStates...)
)

// guard is the record of core/idempotency.
var guard = &diagram{
	title: "The record of a guard",
	rows:  []float64{90, 246, 462},
	states: []state{
		{noRecord, "the key is new", 0, 0},
		{pending, "its owner runs it", 0, 1},
		{leaseOver, "late, or gone", 1, 1},
		{asking, "Reconcile, then run", 2, 1},
		{free, "the next one runs", 0, 2},
		{done, "result or tombstone", 1, 2},
		{inDoubt, "nobody knows", 2, 2},
	},
	group: group{name: begun, members: begunStates, foot: 50},
	arrows: []arrow{
		{
			from: noRecord, to: pending, out: port{bottom, 0}, in: port{top, 0}, label: []string{"begin"},
			moves: on("begin", noRecord),
		},
		{
			from: pending, to: pending, out: port{top, 0.4}, in: port{top, 0.9}, label: []string{"renew"},
			moves: either(on("renew", pending), on("begin again", pending)),
		},
		{
			from: asking, to: asking, out: port{top, -0.9}, in: port{top, -0.4}, label: []string{"renew"},
			moves: either(on("renew", asking), on("begin again", asking)),
		},
		{
			from: pending, to: leaseOver, out: port{rightward, -0.4}, in: port{leftward, -0.4}, label: []string{"not renewed"},
			moves: on("time", pending),
		},
		{
			from: leaseOver, to: pending, out: port{leftward, 0.4}, in: port{rightward, 0.4}, label: []string{"begin (Retry);", "renew"},
			moves: either(on("begin Retry", leaseOver), on("begin again", leaseOver), on("renew", leaseOver)),
		},
		{
			from: asking, to: leaseOver, out: port{leftward, -0.4}, in: port{rightward, -0.4}, label: []string{"not renewed"},
			moves: on("time", asking),
		},
		{
			from: leaseOver, to: asking, out: port{rightward, 0.4}, in: port{leftward, 0.4}, label: []string{"begin", "(Reconcile);", "renew"},
			moves: either(on("begin Reconcile", leaseOver), on("begin again", leaseOver), on("renew", leaseOver)),
		},
		{
			from: begun, to: done, out: port{side: bottom}, in: port{top, -0.5}, label: []string{"complete;", "resolve"},
			moves: either(on("complete", begunStates...), on("resolve", leaseOver)),
		},
		{
			from: free, to: pending, out: port{top, -0.5}, in: port{bottom, -0.5}, label: []string{"begin"},
			moves: on("begin", free),
		},
		{
			from: begun, to: free, out: port{side: bottom}, in: port{top, 0.2}, label: []string{"abandon;", "resolve"},
			moves: either(on("abandon free", begunStates...), on("abandon undo", pending, leaseOver), on("resolve", leaseOver)),
		},
		{
			from: begun, to: inDoubt, out: port{side: bottom}, in: port{top, -0.9}, label: []string{"abandon;", "begin (Reject)"},
			moves: either(on("abandon doubt", begunStates...), on("abandon undo", asking, leaseOver), on("begin Reject", leaseOver)),
		},
		{
			from: inDoubt, to: asking, out: port{top, 0.75}, in: port{bottom, 0.75}, label: []string{"begin", "(Reconcile)"},
			moves: on("begin Reconcile", inDoubt),
		},
		{
			from: inDoubt, to: done, out: port{leftward, 0}, in: port{rightward, 0}, label: []string{"complete;", "resolve"},
			moves: either(on("complete", inDoubt), on("resolve", inDoubt)),
		},
		{
			from: inDoubt, to: free, out: port{bottom, 0}, in: port{bottom, 0}, label: []string{"resolve"},
			moves: on("resolve", inDoubt),
		},
	},
	notes: []note{
		{
			text: "An abandoned run is free when it did nothing, or with Retry; otherwise it is in doubt.",
		},
		{
			text: "Of what is begun, resolve ends only a run whose lease is over.",
		},
		{
			text:  "Forget, and the end of the retention, lead from everywhere to no record.",
			moves: either(on("forget", recorded...), on("retention", recorded...)), to: noRecord,
		},
		{
			text:  "Who has run it may complete it although the record is gone: it is done then.",
			moves: on("complete", noRecord), to: done,
		},
	},
}
