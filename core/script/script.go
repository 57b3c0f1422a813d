package script

import (
	"crypto/sha1" //nolint:gosec // EVALSHA names a script by its SHA-1.
	"encoding/hex"
)

// Script is constant Lua text. It is immutable and safe for concurrent use.
type Script struct {
	name   string
	source any // boxed once, so that a call does not
	sha    any
}

// New makes a script. The name is the file's, without directory; errors carry
// it with the line that failed.
func New(name, source string) *Script {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // as above
	return &Script{name: name, source: source, sha: hex.EncodeToString(sum[:])}
}

// Name is the file's name.
func (s *Script) Name() string { return s.name }

// Source is the Lua text, exactly the bytes that Redis runs.
func (s *Script) Source() string { return s.source.(string) }

// SHA is what EVALSHA calls the script by.
func (s *Script) SHA() string { return s.sha.(string) }
