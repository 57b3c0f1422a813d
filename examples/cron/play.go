package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/neap-go/neap/examples/internal/backend"
	"github.com/neap-go/neap/examples/internal/self"
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

	lines, _, err := self.All(ctx, 5, func(i int) []string { // one will be killed
		return []string{"-process", fmt.Sprint("process-", i+1), "-redis", s.URL, "-first", strconv.FormatInt(first.UnixMilli(), 10)}
	})
	if err != nil {
		return err
	}

	completed := map[string][]string{} // who completed each tick
	killed := ""
	for l := range lines {
		fmt.Println(l.Text)
		words := strings.Fields(l.Text)
		switch tick, who, what := words[0], words[1], words[2]; {
		case what == "began" && tick == doomed && killed == "":
			if err := l.From.Process.Kill(); err != nil {
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
