package main

import "github.com/neap-go/neap/internal/svg"

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
	title:  "The record of a guard",
	height: 641,
	rows:   []float64{90, 246, 462},
	states: []state{
		{noRecord, "the key is new", 0, 0},
		{pending, "its owner runs it", 0, 1},
		{leaseOver, "late, or gone", 1, 1},
		{asking, "Reconcile, then run", 2, 1},
		{free, "the next one runs", 0, 2},
		{done, "result or tombstone", 1, 2},
		{inDoubt, "outcome not known", 2, 2},
	},
	group: group{begun, begunStates, svg.Box{Left: 16, Top: 173, Right: 744, Bottom: 327}},
	arrows: []arrow{
		{noRecord, pending, port{bottom, 0}, port{top, 0}, label{119, 164, atStart, "begin"},
			moves{"begin": {noRecord}}},
		{pending, pending, port{top, 0.4}, port{top, 0.9}, label{179.2, 198.4, atStart, "renew"},
			moves{"renew": {pending}, "begin again": {pending}}},
		{asking, asking, port{top, -0.9}, port{top, -0.4}, label{580.8, 198.4, atEnd, "renew"},
			moves{"renew": {asking}, "begin again": {asking}}},
		{pending, leaseOver, port{rightward, -0.4}, port{leftward, -0.4}, label{245, 220.1, atMiddle, "not renewed"},
			moves{"time": {pending}}},
		{leaseOver, pending, port{leftward, 0.4}, port{rightward, 0.4},
			label{245, 278.2, atMiddle, "begin (Retry);\nrenew"},
			moves{"begin Retry": {leaseOver}, "begin again": {leaseOver}, "renew": {leaseOver}}},
		{asking, leaseOver, port{leftward, -0.4}, port{rightward, -0.4}, label{515, 220.1, atMiddle, "not renewed"},
			moves{"time": {asking}}},
		{leaseOver, asking, port{rightward, 0.4}, port{leftward, 0.4},
			label{515, 278.2, atMiddle, "begin\n(Reconcile);\nrenew"},
			moves{"begin Reconcile": {leaseOver}, "begin again": {leaseOver}, "renew": {leaseOver}}},
		{begun, done, port{bottom, 0}, port{top, -0.5}, label{353.5, 374.5, atStart, "complete;\nresolve"},
			moves{"complete": begunStates, "resolve": {leaseOver}}},
		{free, pending, port{top, -0.5}, port{bottom, -0.5}, label{65.5, 358.5, atEnd, "begin"},
			moves{"begin": {free}}},
		{begun, free, port{bottom, 0}, port{top, 0.2}, label{133.2, 374.5, atStart, "abandon;\nresolve"},
			moves{"abandon free": begunStates, "abandon undo": {pending, leaseOver}, "resolve": {leaseOver}}},
		{begun, inDoubt, port{bottom, 0}, port{top, -0.9}, label{577.1, 374.5, atEnd, "abandon;\nbegin (Reject)"},
			moves{"abandon doubt": begunStates, "abandon undo": {asking, leaseOver}, "begin Reject": {leaseOver}}},
		{inDoubt, asking, port{top, 0.75}, port{bottom, 0.75}, label{694.3, 349.5, atEnd, "begin\n(Reconcile)"},
			moves{"begin Reconcile": {inDoubt}}},
		{inDoubt, done, port{leftward, 0}, port{rightward, 0}, label{515, 430.5, atMiddle, "complete;\nresolve"},
			moves{"complete": {inDoubt}, "resolve": {inDoubt}}},
		{inDoubt, free, port{bottom, 0}, port{bottom, 0}, label{380, 527.5, atMiddle, "resolve"},
			moves{"resolve": {inDoubt}}},
	},
	notes: []note{
		{text: "An abandoned run is free if it did nothing, or with Retry. Otherwise it is in doubt."},
		{text: "Resolve ends a begun run only if its lease is over."},
		{"Forget leads from every state to no record, and so does the end of the retention.",
			moves{"forget": recorded, "retention": recorded}, noRecord},
		{"An owner may complete its run even if the record is gone. Then the run is done.",
			moves{"complete": {noRecord}}, done},
	},
}
