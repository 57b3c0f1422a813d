package idempotency_test

import (
	"fmt"
	"strconv"

	"github.com/anishathalye/porcupine"

	"github.com/neap-go/neap/internal/history"
)

// The model of a history is the oracle with its clock standing still, because the leases
// are longer than a history. Owners are numbers that the test gives.

// wish is the input of an operation.
type wish struct {
	key   string
	event event
	may   bool // the operation has no answer
	ends  bool // comes after all answers: an operation that would come later does not happen
}

func (w wish) OfKey() string { return w.key }

// word is the output of an operation, as a Guard reports it.
type word struct {
	what    string // "claimed", "ok", "lost", …
	fence   int64
	attempt int64
	result  string
}

type standing struct {
	oracle
	last int64 // the fence that was given, or one more for each fence that was not reported
	over bool
}

var linearModel = porcupine.Model{
	Partition: history.ByKey,
	Init:      func() any { return standing{} },
	Step: func(state, input, output any) (bool, any) {
		return state.(standing).step(input.(wish), output.(word))
	},
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%s %.40q: %+v", input.(wish).event.script, input.(wish).event.args, output)
	},
	DescribeState: func(state any) string {
		s := state.(standing)
		return fmt.Sprintf("%.60q", s.text())
	},
}

func linearEnd(key string) (input, output any) { return wish{key: key, ends: true}, word{} }

func (s standing) step(w wish, told word) (legal bool, next standing) {
	next = s
	switch {
	case w.ends:
		next.over = true
		return true, next
	case w.may && s.over:
		return true, s
	}
	mine := s.owner == w.event.owner() && s.running()
	reply := next.apply(w.event)
	granted := w.event.script == "begin" && reply == itself && next.running()
	if granted && !mine {
		next.fence = s.last + 1
	}
	said := next.says(w.event, reply)
	switch {
	case w.may:
	case said.what != told.what || said.attempt != told.attempt || said.result != told.result:
		return false, s
	case granted && (told.fence < next.fence || told.fence < s.last):
		return false, s
	case granted:
		next.fence = told.fence
	}
	next.last = max(s.last, next.fence)
	return true, next
}

// says returns what a Guard reports for a script's reply.
func (s standing) says(e event, reply any) word {
	n, _ := reply.(int64)
	switch e.script {
	case "begin":
		switch {
		case reply != itself:
			return word{what: "in flight"}
		case s.running():
			return word{what: "claimed", attempt: s.attempt}
		case s.state == "done":
			return word{what: "done", result: s.result}
		}
		return word{what: s.state}
	case "forget":
		return word{what: []string{"none", "ok"}[n]}
	case "inspect":
		return word{what: s.state, attempt: s.attempt}
	case "resolve":
		if n < 1 {
			return word{what: map[int64]string{0: "not in doubt", -1: "in flight", -2: "not in doubt"}[n]}
		}
	case "renew":
		if n == 0 {
			return word{what: "concluded"}
		}
	}
	if n < 0 && (n != -2 || e.name() != "abandon free") {
		return word{what: "lost"}
	}
	return word{what: "ok"}
}

func (e event) owner() string {
	if len(e.args) == 0 {
		return ""
	}
	return e.args[0]
}

// These are the events of a history. A lease and a keep of 1 last as long as the history.

func begins(owner int) event {
	return event{"begin", []string{strconv.Itoa(owner), "-", "1", "1", "reject"}}
}

func renews(owner int) event { return event{"renew", []string{strconv.Itoa(owner), "1", "1"}} }

func completes(owner int, fence, attempt int64, result string) event {
	return event{"complete", []string{
		strconv.Itoa(owner), "done", "1", strconv.FormatInt(fence, 10), strconv.FormatInt(attempt, 10), "-", result,
	}}
}

func abandons(owner int, how string) event {
	return event{"abandon", []string{strconv.Itoa(owner), how, "1", "1"}}
}

func resolves(token int, state, result string) event {
	return event{"resolve", []string{strconv.Itoa(token), state, "1", result}}
}
