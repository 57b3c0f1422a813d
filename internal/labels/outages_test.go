package labels_test

import (
	"testing"
	"time"

	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/labels"
)

// TestOutages follows outages of several servers: each begins with lost and ends with back. An open breaker counts as
// one too, and a server without a call for a minute is not failing.
func TestOutages(t *testing.T) {
	t.Parallel()
	var o labels.Outages
	event := func(name string, outcome store.Outcome) {
		o.Note(&store.Event{Primitive: store.Server, Name: name, Outcome: outcome, Change: true})
	}
	for _, c := range []struct {
		when string
		then func()
		g    store.Gauge
		want bool
	}{
		{"before", func() {}, store.Gauge{Name: "a"}, true},
		{"a failure", func() {}, store.Gauge{Name: "a", Failing: time.Second}, true},
		{"an open breaker", func() {}, store.Gauge{Name: "a", Failing: time.Second, Open: true}, false},
		{"lost", func() { event("a", store.Lost) }, store.Gauge{Name: "a", Failing: time.Second}, false},
		{"another server", func() {}, store.Gauge{Name: "b", Failing: time.Second}, true},
		{"a lost lock of that name", func() { o.Note(&store.Event{Primitive: store.Lock, Name: "b", Outcome: store.Lost}) }, store.Gauge{Name: "b", Failing: time.Second}, true},
		{"not asked for a minute", func() {}, store.Gauge{Name: "a"}, true},
		{"asked again", func() {}, store.Gauge{Name: "a", Failing: time.Second}, false},
		{"back", func() { event("a", store.Back) }, store.Gauge{Name: "a", Failing: time.Second}, true},
	} {
		c.then()
		if got := o.Answers(&c.g); got != c.want {
			t.Errorf("%s: got %t, want %t", c.when, got, c.want)
		}
	}
}
