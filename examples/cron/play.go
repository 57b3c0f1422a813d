package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/neap-go/neap/examples/internal/backend"
)

// play starts the processes, kills the one that begins the third tick, and says
// what is wrong with what they did.
func play(ctx context.Context, url string) error {
	ctx, end := context.WithCancel(ctx)
	defer end() // of the processes too
	s, err := backend.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer s.Close()
	first := time.Now().Truncate(every).Add(2 * every)
	doomed := first.Add(2 * every).Format(clock)

	lines := make(chan line)
	var running sync.WaitGroup
	for i := range 5 {
		if err := start(ctx, fmt.Sprint("process-", i+1), s.URL, first, lines, &running); err != nil {
			return err
		}
	}
	go func() {
		running.Wait()
		close(lines)
	}()

	completed := map[string][]string{} // who completed each tick
	killed := ""
	for l := range lines {
		fmt.Println(l.text)
		words := strings.Fields(l.text)
		switch tick, who, what := words[0], words[1], words[2]; {
		case what == "began" && tick == doomed && killed == "":
			if err := l.from.Kill(); err != nil {
				return err
			}
			killed = who
			fmt.Println(tick, who, "was killed")
		case what == "completed":
			completed[tick] = append(completed[tick], who)
		}
	}
	return judge(first, doomed, killed, completed)
}

type line struct {
	from *os.Process
	text string
}

// start starts one process, whose lines are sent until it ends.
func start(ctx context.Context, name, url string, first time.Time, lines chan<- line, running *sync.WaitGroup) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "-process", name, "-redis", url, "-first", strconv.FormatInt(first.UnixMilli(), 10))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	running.Go(func() {
		for text := bufio.NewScanner(out); text.Scan(); {
			lines <- line{cmd.Process, text.Text()}
		}
		_ = cmd.Wait() // one is killed
	})
	return nil
}

func judge(first time.Time, doomed, killed string, completed map[string][]string) error {
	for i := range ticks {
		tick := first.Add(time.Duration(i) * every).Format(clock)
		if n := len(completed[tick]); n != 1 {
			return fmt.Errorf("the tick of %s completed %d times", tick, n)
		}
	}
	if killed == "" || completed[doomed][0] == killed {
		return fmt.Errorf("the tick of %s was taken over by nobody", doomed)
	}
	fmt.Printf("%d ticks, each completed once: %s took over from %s.\n", ticks, completed[doomed][0], killed)
	return nil
}
