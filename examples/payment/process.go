package main

import (
	"context"
	"io"
	"maps"
	"net/http"
	"strings"

	"github.com/neap-go/neap/examples/internal/self"
)

// process is one of the shop.
type process struct {
	*self.Process

	url    string
	client *http.Client
}

// start starts a process of the shop, which says where it listens.
func start(ctx context.Context, args ...string) (*process, error) {
	p, err := self.Start(ctx, args...)
	if err != nil {
		return nil, err
	}
	url, err := p.First()
	return &process{p, url, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}}, err
}

// proceed has the handler go on that it holds.
func (p *process) proceed() error {
	_, err := io.WriteString(p.In, "\n")
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
	_ = p.Cmd.Process.Kill()
	p.buried()
}

func (p *process) buried() {
	_ = p.Wait() // it was killed
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
