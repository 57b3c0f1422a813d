package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// build builds the play program.
func build(ctx context.Context) (binary string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "play")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	binary = filepath.Join(dir, "play")
	cmd := exec.CommandContext(ctx, "go", "build", "-C", root, "-o", binary, "./examples/play")
	if out, err := cmd.CombinedOutput(); err != nil {
		remove()
		return "", nil, fmt.Errorf("%w: %s", err, out)
	}
	return binary, remove, nil
}

// startPlay starts it. The function that is returned ends it.
func startPlay(ctx context.Context, binary, addr string) (url string, end func(), err error) {
	ctx, stop := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, binary, "-addr", addr, "-budget", "2s") // a busy machine is no outage
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		stop()
		return "", nil, err
	}
	end = func() {
		stop()
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) < 2 {
		end()
		return "", nil, fmt.Errorf("the play program said %q: %w", line, err)
	}
	return words[1], end, nil
}
