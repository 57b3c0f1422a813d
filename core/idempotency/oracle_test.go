package idempotency_test

import (
	"fmt"
	"strconv"
)

// oracle is the model of a key's record. It follows the table of the design and not the
// scripts: a state, an event, and the next state. Its times are in milliseconds.
type oracle struct {
	micros int64 // the server's clock

	state        string // "" if there is no record
	fence        int64
	attempt      int64
	ends, lease  int64
	owner, print string
	result       string
	lives        int64
	clocked      bool // this event has read the clock
}

// immortal is the PTTL of a key without a TTL.
const immortal = -1

// itself means that the reply is the record after the event.
const itself = "the record"

func (o *oracle) running() bool { return o.state == "pending" || o.state == "asking" }

func (o *oracle) over() bool { return o.state == "done" || o.state == "gone" }

// left returns how long the run still has: never more than the lease.
func (o *oracle) left() int64 { return min(o.ends-o.micros/1000, o.lease) }

// situation names the state of the record, for the cells of the table.
func (o *oracle) situation() string {
	switch {
	case o.state == "":
		return "none"
	case o.running() && o.left() <= 0:
		return o.state + " lapsed"
	}
	return o.state
}

func (o *oracle) text() string {
	return fmt.Sprintf("%s %d %d %d %d %s %s\n%s", o.state, o.fence, o.attempt, o.ends, o.lease, o.owner, o.print, o.result)
}

// becomes sets the record to a state in which it has no run.
func (o *oracle) becomes(state, owner, result string, keep int64) int64 {
	o.state, o.owner, o.result, o.lives = state, owner, result, keep
	o.ends, o.lease = 0, 0
	return 1
}

func (o *oracle) lasts(lease, keep int64) {
	o.ends, o.lease, o.lives, o.clocked = o.micros/1000+lease, lease, keep, true
}

func (o *oracle) begin(owner, print string, lease, keep int64, policy string, matches bool) any {
	if o.state != "" && o.owner == owner {
		if o.running() {
			o.lasts(lease, keep)
		}
		return itself
	}
	if o.state != "" && o.lives == immortal {
		o.lives = keep
	}
	switch {
	case o.state != "" && o.print != "-" && o.print != print && !matches:
		return int64(0)
	case o.over():
		return itself
	case o.running() && o.left() > 0:
		left := o.left()
		if o.ends-o.micros/1000 > left { // the clock was set back
			o.lasts(left, keep)
		}
		return left
	}
	unclear := o.running() || o.state == "doubt"
	switch {
	case o.running() && policy == "reject":
		o.becomes("doubt", o.owner, "", keep)
		return itself
	case o.state == "doubt" && policy != "reconcile":
		return itself
	}
	if o.state == "" {
		o.fence, o.attempt = 0, 0
	}
	o.becomes("pending", owner, "", keep)
	if unclear && policy == "reconcile" {
		o.state = "asking"
	}
	o.fence = max(o.fence+1, o.micros)
	o.attempt++
	o.print = print
	o.lasts(lease, keep)
	return itself
}

func (o *oracle) renew(owner string, lease, keep int64) int64 {
	switch {
	case o.state == "":
		return -2
	case o.owner != owner || !o.running() && !o.over():
		return -1
	case o.over():
		return 0
	}
	o.lasts(lease, keep)
	return 1
}

func (o *oracle) complete(owner, state string, keep, fence, attempt int64, print, result string) int64 {
	switch {
	case o.state == "":
		o.fence, o.attempt, o.print = fence, attempt, print
		o.becomes(state, owner, result, keep)
		return 2
	case o.owner != owner || o.state == "free":
		return -1
	case o.over():
		return 1
	}
	return o.becomes(state, owner, result, keep)
}

func (o *oracle) abandon(owner, how string, short, long int64) int64 {
	switch {
	case o.state == "":
		return -2
	case o.owner != owner:
		return -1
	case o.over():
		return 0
	case !o.running() && how == "undo":
		return 0
	case !o.running():
		return 1
	}
	if how == "undo" {
		o.attempt--
		how = "free"
		if o.state == "asking" {
			how = "doubt"
		}
	}
	keep := short
	if how == "doubt" {
		keep = long
	}
	return o.becomes(how, owner, "", keep)
}

func (o *oracle) resolve(token, state string, keep int64, result string) int64 {
	switch {
	case o.state == "":
		return -2
	case o.owner == token:
		return 1
	case o.running() && o.left() > 0:
		return -1
	case !o.running() && o.state != "doubt":
		return 0
	}
	return o.becomes(state, token, result, keep)
}

func (o *oracle) forget() int64 {
	if o.state == "" {
		return 0
	}
	*o = oracle{micros: o.micros}
	return 1
}

// inspect returns nil if there is no record.
func (o *oracle) inspect() any {
	if o.state == "" {
		return nil
	}
	left := int64(0)
	if o.running() {
		left = max(o.left(), 0)
	}
	line := *o
	line.result = ""
	text := line.text()
	return []any{text[:len(text)-1], int64(len(o.result)), left, o.lives}
}

// event is a call of a script.
type event struct {
	script string // "begin"
	args   []string
}

func (e event) name() string {
	switch e.script {
	case "begin":
		return "begin " + e.args[4]
	case "abandon":
		return "abandon " + e.args[1]
	case "complete", "resolve":
		return e.script + " " + e.args[1]
	}
	return e.script
}

// apply carries out the event, and returns the reply.
func (o *oracle) apply(e event) any {
	n := func(i int) int64 {
		v, err := strconv.ParseInt(e.args[i], 10, 64)
		if err != nil {
			panic(err)
		}
		return v
	}
	a := e.args
	switch e.script {
	case "begin":
		return o.begin(a[0], a[1], n(2), n(3), a[4], len(a) > 5)
	case "renew":
		return o.renew(a[0], n(1), n(2))
	case "complete":
		return o.complete(a[0], a[1], n(2), n(3), n(4), a[5], a[6])
	case "abandon":
		return o.abandon(a[0], a[1], n(2), n(3))
	case "resolve":
		return o.resolve(a[0], a[1], n(2), a[3])
	case "forget":
		return o.forget()
	case "inspect":
		return o.inspect()
	}
	panic(e.script)
}
