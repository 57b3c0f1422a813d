package wire

import "bytes"

// text is the second word of a command: the SHA of a script, or its source. go-redis asks
// it for its bytes when it writes the command, so text knows when the command is written.
// Code that only routes or logs a command reads its Args, and does not ask for the bytes.
type text struct {
	of     beginner
	script *Script // nil means a script that no server has
	eval   bool    // the word is the source
}

// beginner is a command that is about to be written.
type beginner interface {
	// begin notes that the command is written. It returns false if the command must not
	// be.
	begin() bool
}

// MarshalBinary returns the SHA or the source. For a command that was withdrawn, it
// returns a SHA that the server refuses.
func (t *text) MarshalBinary() ([]byte, error) {
	if !t.of.begin() || t.script == nil {
		return noScript, nil
	}
	return t.bytes(), nil
}

// String returns the same text for logs and traces.
func (t *text) String() string {
	if t.script == nil {
		return string(noScript)
	}
	return string(t.bytes())
}

func (t *text) bytes() []byte {
	if t.eval {
		return t.script.source
	}
	return t.script.sha
}

// noScript is the SHA of a script that no server has. As a source it does not compile.
var noScript = bytes.Repeat([]byte("0"), 40)
