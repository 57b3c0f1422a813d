package main

import "github.com/neap-go/neap/internal/svg"

const (
	held   = "held"
	lapsed = "lapsed"
	forced = "forced open"
	taken  = "taken"
)

var takenStates = []string{held, lapsed}

// lock is the record of core/lock.
var lock = &diagram{
	title:  "The record of a lock",
	height: 449,
	rows:   []float64{90, 270},
	states: []state{
		{noRecord, "no fence yet", 0, 0},
		{free, "the fence is kept", 1, 0},
		{forced, "the fence is kept", 2, 0},
		{held, "owner, holds, fence", 1, 1},
		{lapsed, "the TTL has passed", 2, 1},
	},
	group: group{taken, takenStates, svg.Box{Left: 16, Top: 197, Right: 744, Bottom: 321}},
	arrows: []arrow{
		{noRecord, held, port{bottom, 0.4}, port{top, -0.9}, label{227.3, 158.5, atMiddle, "acquire"},
			moves{"acquire": {noRecord}}},
		{held, held, port{leftward, -0.6}, port{leftward, 0.6},
			label{267, 265.5, atEnd, "acquire by its owner;\nextend; hand on"},
			moves{"acquire by its owner": {held}, "extend": {held}, "hand on": {held}}},
		{held, lapsed, port{rightward, -0.4}, port{leftward, -0.4}, label{515, 244.1, atMiddle, "not renewed"},
			moves{"time": {held}}},
		{lapsed, held, port{leftward, 0.4}, port{rightward, 0.4}, label{515, 302.2, atMiddle, "acquire"},
			moves{"acquire": {lapsed}}},
		{free, held, port{bottom, -0.2}, port{top, -0.2}, label{356.8, 184.5, atEnd, "acquire"},
			moves{"acquire": {free}}},
		{taken, free, port{top, 0}, port{bottom, 0.3}, label{410.3, 151.1, atStart, "release of\nthe last hold"},
			moves{"release": takenStates, "hand on": {lapsed}}},
		{forced, held, port{bottom, -0.7}, port{top, 0.9}, label{601, 156.2, atStart, "acquire"},
			moves{"acquire": {forced}}},
		{taken, forced, port{top, 0}, port{bottom, 0.6}, label{701.6, 163.5, atStart, "force"},
			moves{"force": takenStates}},
	},
	notes: []note{
		{text: "Each grant has a larger fence than all before it. The owner's later holds share it."},
		{text: "Hand on: release a lock, before it lapses, to the next caller in the same process."},
		{"Releasing a hold that is not the owner's last one leaves the lock as it is.",
			moves{"release": takenStates}, ""},
		{"A record is gone after FenceRetention without a request.",
			moves{"retention": {held, lapsed, free, forced}}, noRecord},
	},
}
