package main

const (
	held   = "held"
	lapsed = "lapsed"
	forced = "forced open"
	taken  = "taken"
)

var takenStates = []string{held, lapsed}

// lock is the record of core/lock.
var lock = &diagram{
	title: "The record of a lock",
	rows:  []float64{90, 270},
	states: []state{
		{noRecord, "no fence yet", 0, 0},
		{free, "the fence is kept", 1, 0},
		{forced, "the fence is kept", 2, 0},
		{held, "owner, holds, fence", 1, 1},
		{lapsed, "the TTL has passed", 2, 1},
	},
	group: group{name: taken, members: takenStates, foot: 20},
	arrows: []arrow{
		{
			from: noRecord, to: held, out: port{bottom, 0.4}, in: port{top, -0.9}, label: []string{"acquire"},
			moves: on("acquire", noRecord),
		},
		{
			from: held, to: held, out: port{leftward, -0.6}, in: port{leftward, 0.6}, label: []string{"acquire by its owner;", "extend; hand on"},
			moves: either(on("acquire by its owner", held), on("extend", held), on("hand on", held)),
		},
		{
			from: held, to: lapsed, out: port{rightward, -0.4}, in: port{leftward, -0.4}, label: []string{"not renewed"},
			moves: on("time", held),
		},
		{
			from: lapsed, to: held, out: port{leftward, 0.4}, in: port{rightward, 0.4}, label: []string{"acquire"},
			moves: on("acquire", lapsed),
		},
		{
			from: free, to: held, out: port{bottom, -0.2}, in: port{top, -0.2}, label: []string{"acquire"},
			moves: on("acquire", free),
		},
		{
			from: taken, to: free, out: port{side: top}, in: port{bottom, 0.3}, label: []string{"release of", "the last hold"},
			moves: either(on("release", takenStates...), on("hand on", lapsed)),
		},
		{
			from: forced, to: held, out: port{bottom, -0.7}, in: port{top, 0.9}, label: []string{"acquire"},
			moves: on("acquire", forced),
		},
		{
			from: taken, to: forced, out: port{side: top}, in: port{bottom, 0.6}, label: []string{"force"},
			moves: on("force", takenStates...),
		},
	},
	notes: []note{
		{
			text: "A grant has a larger fence than any before it; its owner's next holds have the same one.",
		},
		{
			text: "To hand on is to release what has not lapsed to who waits in the same process.",
		},
		{
			text:  "A hold that is not the owner's last is released alone; the lock stays as it is.",
			moves: on("release", takenStates...),
		},
		{
			text:  "A record that nobody asks for is gone when FenceRetention has passed.",
			moves: on("retention", held, lapsed, free, forced), to: noRecord,
		},
	},
}
