package script

import (
	"fmt"
	"io/fs"
	"path"

	"github.com/neap-go/neap/core/internal/wire"
)

// Script is constant Lua text. It is immutable and safe for concurrent use. The zero
// Script is not usable; use New or FromFS.
type Script wire.Script

// New makes a script. The name is the name of its file without the directory; errors have
// it with the line that failed.
func New(name, source string) *Script {
	return (*Script)(wire.New(name, source, newError))
}

// newError makes the error of a call.
func newError(name string, class, cause error) error {
	return &Error{Script: name, Class: class, Err: cause}
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
	return (*Script)(s.made().Essential())
}

// Batched returns a copy of the script whose calls a store may send in one batch with
// others. A batch is answered when its last call is, so use Batched for scripts that take
// microseconds. Without a store it is the same script.
func (s *Script) Batched() *Script {
	return (*Script)(s.made().Batched())
}

// Replies returns a copy of the script with the replies that it gives beside errors. number
// reports whether it gives a whole number, and other whether it gives another reply: nil, a
// string, or []any. If one of them is nil, it gives no such reply.
//
// A call with any other reply ends with [ErrMaybeExecuted], and a store takes it for a call
// without an answer, because a proxy may have replied in place of the server. A script
// without Replies takes whatever comes. Both functions must be fast, and safe for
// concurrent use.
func (s *Script) Replies(number func(n int64) bool, other func(reply any) bool) *Script {
	return (*Script)(s.made().Replies(number, other))
}

// Name returns the name that the script was made with.
func (s *Script) Name() string { return s.made().Name() }

// Source returns the Lua text: exactly the bytes that Redis runs.
func (s *Script) Source() string { return s.made().Source() }

// SHA returns the SHA-1 in hexadecimal, by which EVALSHA names the script.
func (s *Script) SHA() string { return s.made().SHA() }

func (s *Script) made() *wire.Script {
	own := (*wire.Script)(s)
	if !own.Made() {
		panic(fmt.Errorf("script: %w", errScript))
	}
	return own
}
