package gate

import "testing"

// TestUnsettledForgets: a subject is forgotten when none of its requests runs, so that a flood of
// subjects leaves nothing in memory.
func TestUnsettledForgets(t *testing.T) {
	t.Parallel()
	var u unsettled
	if !u.first("ann") || u.first("ann") || !u.first("bob") {
		t.Error("got another first, want the first of each subject")
	}
	u.begin("ann")
	u.end("ann")
	if u.first("ann") {
		t.Error("got a first of ann while one runs, want none")
	}
	u.end("ann")
	u.end("bob")
	if len(u.of) != 0 {
		t.Errorf("got %v, want nothing left", u.of)
	}
}
