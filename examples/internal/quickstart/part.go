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

// Build makes a program in an empty directory. The program is a [Quickstart] of the
// frameworks that the one with this Build does not serve by itself: those whose
// requirements would raise the versions of its own.
type Build func(ctx context.Context, dir string) (program string, err error)

// part is the first argument of a program that another quickstart runs. A demo then
// is part of the other's: it has no first and no last line, and says what is off
// and nothing else on stderr. The program ends when its standard input does, so that
// it does not outlive the other, whatever ends that.
const part = "part"

func isPart(args []string) bool { return len(args) > 0 && args[0] == part }

// untilTheEnd is a context that ends when there is no more to read.
func untilTheEnd(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return ctx
}

// elsewhere runs the program of the frameworks that this one does not serve.
type elsewhere struct {
	dir, program string
}

// build makes the program. Who calls it removes it.
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

// run runs the program until it ends, or ctx does: then it has the time to end its
// requests and to remove its keys. The error says that it has no exit status.
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

// serveElsewhere serves as the arguments say. What the program cannot do, it says.
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
