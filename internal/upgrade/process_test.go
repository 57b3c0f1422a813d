//go:build neap_upgrade

package upgrade

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/upgrade/wire"
)

// judge is what a scenario reports to: a test, or the record of a control.
type judge interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// place is one Redis, and a prefix of its own on it.
type place struct {
	addrs, prefix string
}

// places are those that every test runs on.
func places(t *testing.T, run func(t *testing.T, at place)) {
	t.Run("standalone", func(t *testing.T) {
		t.Parallel()
		s := redistest.Standalone(t)
		run(t, place{s.Addr(), s.Prefix(t)})
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := redistest.Cluster(t)
		var addrs []string
		for _, node := range c.Nodes() {
			addrs = append(addrs, node.Addr())
		}
		run(t, place{strings.Join(addrs, ","), c.Prefix(t)})
	})
}

// answerTime is how long a call may take: longer than any wait that is asked for.
const answerTime = 2 * time.Minute

// process is a worker that runs.
type process struct {
	version string
	cmd     *exec.Cmd
	in      io.WriteCloser
	gone    chan struct{} // closed when its standard output has ended

	sessions sync.WaitGroup // of a load: what has chosen it and is not through

	mu     sync.Mutex
	last   int64
	waits  map[int64]chan wire.Answer
	killed bool
	err    error
}

// start starts a worker. It is killed when the test ends, unless it has ended.
func start(t *testing.T, version string, at place) *process {
	t.Helper()
	return startFor(t, t, version, at)
}

// startFor is start for a scenario that may have another judge than the test.
func startFor(t *testing.T, j judge, version string, at place) *process {
	t.Helper()
	path, err := workers[version]()
	if err != nil {
		j.Fatalf("%v", err)
	}
	p, err := launch(path, version, at)
	if err != nil {
		j.Fatalf("starting the worker of the %s: %v", version, err)
	}
	t.Cleanup(p.kill)
	return p
}

func launch(path, version string, at place) (*process, error) {
	p := &process{
		version: version, cmd: exec.Command(path, "-redis", at.addrs, "-prefix", at.prefix),
		gone: make(chan struct{}), waits: map[int64]chan wire.Answer{},
	}
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.read(out)
	return p, nil
}

func (p *process) read(out io.Reader) {
	defer close(p.gone)
	for from := json.NewDecoder(bufio.NewReader(out)); ; {
		var a wire.Answer
		if err := from.Decode(&a); err != nil {
			return
		}
		p.mu.Lock()
		wait := p.waits[a.ID]
		delete(p.waits, a.ID)
		p.mu.Unlock()
		if wait != nil {
			wait <- a
		}
	}
}

// errGone says that a call has no answer, since its process has ended.
var errGone = errors.New("the process has ended")

// call sends a call and waits for its answer.
func (p *process) call(c wire.Call) (wire.Answer, error) {
	wait := make(chan wire.Answer, 1)
	p.mu.Lock()
	p.last++
	c.ID = p.last
	p.waits[c.ID] = wait
	line, err := json.Marshal(c)
	if err == nil {
		_, err = p.in.Write(append(line, '\n'))
	}
	p.mu.Unlock()
	if err != nil {
		return wire.Answer{}, fmt.Errorf("%w: %w", errGone, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	select {
	case a := <-wait:
		return a, nil
	case <-p.gone:
		select {
		case a := <-wait:
			return a, nil
		default:
			return wire.Answer{}, errGone
		}
	case <-ctx.Done():
		return wire.Answer{}, fmt.Errorf("the %s has not answered %s of %q within %v", p.version, c.Op, c.Key, answerTime)
	}
}

// ask is call, and ends the scenario if there is no answer.
func (p *process) ask(j judge, c wire.Call) wire.Answer {
	j.Helper()
	a, err := p.call(c)
	if err != nil {
		j.Fatalf("%s of the %s: %v", c.Op, p.version, err)
	}
	return a
}

// want is ask, and ends the scenario unless the answer is this word, which is empty for
// no error.
func (p *process) want(j judge, word string, c wire.Call) wire.Answer {
	j.Helper()
	a := p.ask(j, c)
	if a.Word != word {
		j.Fatalf("%s of %q by the %s: got the error %q (%s), want %q", c.Op, c.Key, p.version, a.Word, a.Text, word)
	}
	return a
}

// kill kills the process as a crash would. It may be called again.
func (p *process) kill() {
	p.mu.Lock()
	before := p.killed
	p.killed = true
	p.mu.Unlock()
	if !before {
		_ = p.cmd.Process.Kill()
		<-p.gone
		_ = p.cmd.Wait()
	}
}

// end ends the process as a deploy does, and is the error with which it ended.
func (p *process) end() error {
	p.mu.Lock()
	before := p.killed
	p.killed = true
	p.mu.Unlock()
	if before {
		return errGone
	}
	if err := p.in.Close(); err != nil {
		return err
	}
	<-p.gone
	return p.cmd.Wait()
}
