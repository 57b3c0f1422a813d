// Package wire is what neap writes to Redis, and what it makes of the replies: scripts,
// the commands that call them, commands that are merged, and errors. Package call makes
// calls with it, and package queue decides when they are sent.
package wire

import (
	"crypto/sha1" //nolint:gosec // EVALSHA names a script by its SHA-1.
	"encoding/hex"
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// These are the classes of errors. Package script documents them.
var (
	ErrNotExecuted   = errors.New("script: not executed")
	ErrMaybeExecuted = errors.New("script: maybe executed")
	ErrConfiguration = errors.New("script: refused by configuration")
	ErrFailed        = errors.New("script: failed")
)

// Script is what package script calls a Script. It is immutable.
type Script struct {
	name      string
	source    []byte // as a client writes it
	sha       []byte
	fail      Failure
	essential bool
	batched   bool
	merging   *Merging // nil if its calls are not merged
	replies   *replies // nil if any reply will do
	where     func(line int) string
}

// Failure makes the error of a call of the script with that name.
type Failure func(name string, class, cause error) error

// New makes a script. fail makes the errors of its calls.
func New(name, source string, fail Failure) *Script {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // as above
	return &Script{name: name, source: []byte(source), sha: hex.AppendEncode(nil, sum[:]), fail: fail}
}

// Made reports whether New made the script.
func (s *Script) Made() bool { return s != nil && s.sha != nil }

// Essential returns a copy that is essential.
func (s *Script) Essential() *Script {
	own := *s
	own.essential = true
	return &own
}

// IsEssential reports whether the calls of the script are sent even while others are held
// back.
func (s *Script) IsEssential() bool { return s.essential }

// Batched returns a copy that is batched.
func (s *Script) Batched() *Script {
	own := *s
	own.batched = true
	return &own
}

// IsBatched reports whether a call of the script may be sent together with others.
func (s *Script) IsBatched() bool { return s.batched }

// Name returns the name that the script was made with.
func (s *Script) Name() string { return s.name }

// Source returns the Lua text.
func (s *Script) Source() string { return string(s.source) }

// SHA returns the SHA-1 of the text.
func (s *Script) SHA() string { return string(s.sha) }

// Merging returns how its calls are merged, or nil.
func (s *Script) Merging() *Merging { return s.merging }

// Fail returns the error of a call. Where Redis named the script in the cause, it has the
// name of the file.
func (s *Script) Fail(class, cause error) error { return s.fail(s.name, class, s.place(cause)) }

// Placed returns a copy of the script whose lines come from several files. where returns
// the file of a line and the line there.
func (s *Script) Placed(where func(line int) string) *Script {
	own := *s
	own.where = where
	return &own
}

// lineOf matches Redis' name for a line of a script. Redis before 7.0 has a space in it.
var lineOf = regexp.MustCompile(`user_script:( ?)(\d+)`)

// place replaces Redis' name for the script by the name of its file: "user_script:12"
// becomes "limit_window.lua:12".
func (s *Script) place(err error) error {
	text := err.Error()
	if !strings.Contains(text, "user_script:") {
		return err
	}
	if s.where != nil {
		text = lineOf.ReplaceAllStringFunc(text, func(found string) string {
			line, _ := strconv.Atoi(strings.TrimPrefix(found[len("user_script:"):], " "))
			return s.where(line)
		})
	}
	return located{strings.ReplaceAll(text, "user_script:", s.name+":"), err}
}

type located struct {
	text string
	err  error
}

func (l located) Error() string { return l.text }
func (l located) Unwrap() error { return l.err }
