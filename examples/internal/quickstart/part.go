package quickstart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Build makes a program in an empty directory, and returns its path. The program is a
// [Quickstart] of the frameworks that have no Serve: what they require would raise the
// versions of the module that has this Build.
type Build func(ctx context.Context, dir string) (program string, err error)

// part is the first argument of a program that another quickstart runs. Its demo is then
// a part of the other's: it has no first and no last line, and says nothing on stderr
// but what is off. The program ends when its standard input does, so that it never
// outlives the other.
const part = "part"

func isPart(args []string) bool { return len(args) > 0 && args[0] == part }

// elsewhere runs the program of the frameworks that this one does not serve.
type elsewhere struct {
	dir, program string
}

// build makes the program. The caller removes it.
func (q Quickstart) build(ctx context.Context) (_ elsewhere, err error) {
	dir, err := os.MkdirTemp("", "quickstart")
	if err != nil {
		return elsewhere{}, err
	}
	e := elsewhere{dir: dir}
	if e.program, err = q.Build(ctx, dir); err != nil {
		e.remove()
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
	}
	return e, err
}

func (e elsewhere) remove() { _ = os.RemoveAll(e.dir) }

// run runs the program until it ends. When ctx ends, so does the program's standard
// input, and it has time to end its requests and to remove its keys. There is an error
// if the program has no exit status.
func (e elsewhere) run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int, err error) {
	cmd := exec.CommandContext(ctx, e.program, append([]string{part}, args...)...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	cmd.Cancel = stdin.Close
	cmd.WaitDelay = longest + time.Minute
	err = cmd.Run()
	if cmd.ProcessState != nil && cmd.ProcessState.Exited() {
		return cmd.ProcessState.ExitCode(), nil
	}
	return 0, err
}

// serveElsewhere has the program serve as the arguments say. The program itself reports
// what it cannot do.
func (q Quickstart) serveElsewhere(ctx context.Context, args []string, stdout, stderr io.Writer) (code int, err error) {
	e, err := q.build(ctx)
	if err != nil {
		return 0, err
	}
	defer e.remove()
	return e.run(ctx, args, stdout, stderr)
}

// visit is the part of a demo that shows a framework. Its error says what was not
// as expected.
func (e elsewhere) visit(ctx context.Context, f Framework, redis, addr string, stdout, stderr io.Writer) error {
	var said bytes.Buffer
	code, err := e.run(ctx, []string{"-framework", f.Name, "-redis", redis, "-addr", addr}, stdout, &said)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w\n%s", f.Title, err, said.String())
	case code != 0:
		return errors.New(strings.TrimSpace(said.String()))
	}
	_, err = said.WriteTo(stderr)
	return err
}
