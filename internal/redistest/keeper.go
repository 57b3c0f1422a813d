package redistest

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

//go:embed keeper.sh
var keeperScript string

// keeper is the shell that one server runs under. The shell, not this
// process, is the server's parent: it is still there to kill it after a panic,
// a timeout or kill -9 here.
type keeper struct {
	dir string
	cmd *exec.Cmd

	mu      sync.Mutex
	verbs   io.WriteCloser
	answers *bufio.Reader
}

func newKeeper(command func(dir string) ([]string, error)) (*keeper, error) {
	dir, err := os.MkdirTemp("", "redistest-")
	if err != nil {
		return nil, err
	}
	words, err := command(dir)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	k := &keeper{dir: dir}
	k.cmd = exec.Command("/bin/sh", append([]string{"-c", keeperScript, "redistest", dir}, words...)...)
	if k.verbs, err = k.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	answers, err := k.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	k.answers = bufio.NewReader(answers)
	return k, k.cmd.Start()
}

// tell has the shell do one verb and returns when it is done.
func (k *keeper) tell(verb string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, err := fmt.Fprintln(k.verbs, verb); err != nil {
		return err
	}
	_, err := k.answers.ReadString('\n')
	return err
}

// start starts the server and waits until it accepts connections. The
// server's own log tells, because another process may answer on its port.
func (k *keeper) start() error {
	if err := k.tell("start"); err != nil {
		return err
	}
	const bound, looks = 30 * time.Second, 100
	before, unchanged := "", 0
	for deadline := time.Now().Add(bound); ; time.Sleep(2 * time.Millisecond) {
		log := k.log()
		if unchanged++; log != before {
			before, unchanged = log, 0
		}
		failed := strings.Contains(log, "aborting") || strings.Contains(log, "FATAL CONFIG")
		switch {
		case strings.Contains(log, "Ready to accept connections"), strings.Contains(log, "+monitor master"): // a sentinel says this
			return nil
		case failed && unchanged >= looks, time.Now().After(deadline): // it says why behind that
			if err := k.tell("stop"); err != nil {
				return err
			}
			return fmt.Errorf("redistest: the server did not start; its log ends:\n%s", tail(log, 20))
		}
	}
}

// end stops the server for good and removes its directory.
func (k *keeper) end() error {
	if err := k.verbs.Close(); err != nil {
		return err
	}
	return k.cmd.Wait()
}

func (k *keeper) log() string {
	text, err := os.ReadFile(filepath.Join(k.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
