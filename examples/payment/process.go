package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

// process is one of the shop.
type process struct {
	cmd    *exec.Cmd
	url    string
	said   chan string
	stdin  io.Writer
	client *http.Client
}

// start starts a process of the shop, which says where it listens.
func start(ctx context.Context, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{
		cmd: exec.CommandContext(ctx, self, args...), said: make(chan string, 16),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}},
	}
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(p.said)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.said <- lines.Text()
		}
	}()
	if p.url = <-p.said; p.url == "" {
		return nil, fmt.Errorf("a process of the shop did not start: %w", p.cmd.Wait())
	}
	return p, nil
}

// proceed has the handler go on that it holds.
func (p *process) proceed() error {
	_, err := io.WriteString(p.stdin, "\n")
	return err
}

// idle waits until nothing runs in it that was begun, or is still to be noted.
func (p *process) idle(ctx context.Context) error {
	return until(ctx, "the shop", func() (bool, error) {
		response, err := p.do(ctx, http.MethodGet, "/idle", nil, "")
		return err == nil && response.status == http.StatusOK, nil
	})
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	p.buried()
}

func (p *process) buried() {
	_ = p.cmd.Wait() // it was killed
	p.client.CloseIdleConnections()
}

// answer is what a provider gets.
type answer struct {
	status int
	body   string
}

func (p *process) do(ctx context.Context, method, path string, header http.Header, body string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, p.url+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	maps.Copy(r.Header, header)
	response, err := p.client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, string(text)}, err
}
