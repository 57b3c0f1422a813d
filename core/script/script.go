package script

import (
	"crypto/sha1" //nolint:gosec // EVALSHA names a script by its SHA-1.
	"encoding/hex"
	"fmt"
)

// Script is constant Lua text. It is immutable and safe for concurrent use. The
// zero Script is not usable: New makes one.
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
func (s *Script) Name() string {
	s.made()
	return s.name
}

// Source is the Lua text, exactly the bytes that Redis runs.
func (s *Script) Source() string {
	s.made()
	return s.source.(string)
}

// SHA is what EVALSHA calls the script by.
func (s *Script) SHA() string {
	s.made()
	return s.sha.(string)
}

func (s *Script) made() {
	if s == nil || s.sha == nil {
		panic(fmt.Errorf("script: %w", errScript))
	}
}
