// Package self starts the program of an example once more, or several times, for the
// examples that several processes play.
package self

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// Process is the program once more. It ends with this process if it lives [WhileOpen].
type Process struct {
	*exec.Cmd

	In    io.Writer     // its standard input
	Lines <-chan string // what it says; closed behind the last line
}

// Start starts the program with other arguments. It writes its errors where this process
// does.
func Start(ctx context.Context, args ...string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{Cmd: exec.CommandContext(ctx, self, args...)}
	p.Stderr = os.Stderr
	if p.In, err = p.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		return nil, err
	}
	lines := make(chan string, 16)
	p.Lines = lines
	go func() {
		defer close(lines)
		for text := bufio.NewScanner(out); text.Scan(); {
			lines <- text.Text()
		}
	}()
	return p, nil
}

// First is the first line. It is an error if the process ends without a word.
func (p *Process) First() (string, error) {
	if text, ok := <-p.Lines; ok {
		return text, nil
	}
	return "", fmt.Errorf("a process did not start: %w", p.Wait())
}

// Line is one of what a process says.
type Line struct {
	From *Process
	Text string
}

// All starts n processes, each with its arguments. All that they say is sent until the last
// of them has ended; then ended tells how they did.
func All(ctx context.Context, n int, args func(i int) []string) (said <-chan Line, ended func() error, err error) {
	lines := make(chan Line)
	errs := make([]error, n)
	var running sync.WaitGroup
	for i := range n {
		p, err := Start(ctx, args(i)...)
		if err != nil {
			return nil, nil, err
		}
		running.Go(func() {
			for text := range p.Lines {
				lines <- Line{p, text}
			}
			errs[i] = p.Wait()
		})
	}
	go func() {
		running.Wait()
		close(lines)
	}()
	return lines, func() error { return errors.Join(errs...) }, nil
}

// WhileOpen is a context that ends when nothing holds the other end of in any more: so a
// process ends with the one that started it, however that did.
func WhileOpen(ctx context.Context, in io.Reader) context.Context {
	ctx, end := context.WithCancel(ctx)
	go func() {
		defer end()
		_, _ = io.Copy(io.Discard, in)
	}()
	return ctx
}
