package script

import "bytes"

// text is the second word of a command: the SHA of a script, or its source. go-redis asks it for its bytes
// when it writes the command. So the command knows that it is written; what routes or logs a command
// asks for its Args as well.
type text struct {
	of     beginner
	script *Script // nil is one that no server has
	eval   bool    // its source
}

// beginner is a command that is about to be written.
type beginner interface {
	// begin notes that the command is written, and reports whether it may be.
	begin() bool
}

// MarshalBinary is the script. In the place of a command that was withdrawn go-redis writes
// a call that the server refuses.
func (t *text) MarshalBinary() ([]byte, error) {
	if !t.of.begin() || t.script == nil {
		return noScript, nil
	}
	return t.bytes(), nil
}

// String is for logs and traces.
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
