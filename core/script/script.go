package script

import (
	"crypto/sha1" //nolint:gosec // EVALSHA names a script by its SHA-1.
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
)

// Script is constant Lua text. It is immutable and safe for concurrent use. The zero
// Script is not usable; use New or FromFS.
type Script struct {
	name      string
	source    []byte // as a client writes it
	sha       []byte
	essential bool
	batched   bool
	merging   *Merging // nil if its calls are not merged
	replies   *replies // nil if any reply will do
}

// New makes a script. The name is the name of its file without the directory; errors have
// it with the line that failed.
func New(name, source string) *Script {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // as above
	return &Script{name: name, source: []byte(source), sha: hex.AppendEncode(nil, sum[:])}
}

// FromFS makes a script from a file, such as one of an embed.FS, by its path. It panics
// if the file cannot be read.
func FromFS(fsys fs.FS, file string) *Script {
	source, err := fs.ReadFile(fsys, file)
	if err != nil {
		panic(fmt.Errorf("script.FromFS: %w", err))
	}
	return New(path.Base(file), string(source))
}

// Essential returns a copy of the script, for scripts that keep, conclude or take back
// something that was granted. A store sends its calls even while it holds other calls
// back because Redis has not answered lately. Without a store it is the same script.
func (s *Script) Essential() *Script {
	s.made()
	own := *s
	own.essential = true
	return &own
}

// IsEssential reports whether the script was made by Essential.
func (s *Script) IsEssential() bool {
	s.made()
	return s.essential
}

// Batched returns a copy of the script whose calls a store may send in one batch with
// others. A batch is answered when its last call is, so use Batched for scripts that take
// microseconds. Without a store it is the same script.
func (s *Script) Batched() *Script {
	s.made()
	own := *s
	own.batched = true
	return &own
}

// IsBatched reports whether the script was made by Batched.
func (s *Script) IsBatched() bool {
	s.made()
	return s.batched
}

// Name returns the name of the script's file.
func (s *Script) Name() string {
	s.made()
	return s.name
}

// Source returns the Lua text: exactly the bytes that Redis runs.
func (s *Script) Source() string {
	s.made()
	return string(s.source)
}

// SHA returns the SHA-1 in hexadecimal, by which EVALSHA names the script.
func (s *Script) SHA() string {
	s.made()
	return string(s.sha)
}

func (s *Script) made() {
	if s == nil || s.sha == nil {
		panic(fmt.Errorf("script: %w", errScript))
	}
}
