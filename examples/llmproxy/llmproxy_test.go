package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/neaptest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// TestServing answers a request until the program is stopped, and then leaves no keys.
func TestServing(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	ctx, stop := context.WithCancel(t.Context())
	said, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"-redis", srv.AdminURL(), "-addr", "127.0.0.1:0"}, out)
		out.CloseWithError(err)
		ended <- err
	}()
	text := make([]byte, 4096)
	n, err := io.ReadAtLeast(said, text, len(curl))
	if err != nil {
		t.Fatalf("the program said %q and ended: %v", text[:n], err)
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	at, _, _ := strings.Cut(string(text[strings.Index(string(text), "http://"):]), "/v1")
	request, err := newRequest(t.Context(), at, asks{user: "ann", model: "small", most: 9, says: "words=2"})
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || strings.Count(string(body), word) != 2 {
		t.Errorf("got %s, %v, want two words", body, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the program ended with %v, want no error", err)
	}
	if left := srv.Admin(t).DBSize(t.Context()).Val(); left > 0 {
		t.Errorf("the program left %d keys, want 0", left)
	}
}

// asks is a request, and what should come of it.
type asks struct {
	user, model string
	most        int64  // its max_tokens
	says        string // to the model

	leaves int  // after so many words; 0 stays to the end
	plain  bool // it asks for no stream
	down   bool // the upstream is down

	status int
	answer int64 // tokens that it is charged beside its prompt, or -1 if it is charged nothing
}

// outcome is what became of one.
type outcome struct {
	asks

	status     int
	retryAfter string
	err        error
}

// stage is a proxy, and its users.
type stage struct {
	limits

	client   *http.Client
	ended    chan *call
	speaking chan struct{} // gets one for each stream that has begun
}

// send sends requests at once.
func (s *stage) send(ctx context.Context, requests []asks) (outcomes []<-chan outcome) {
	for _, a := range requests {
		one := make(chan outcome, 1)
		outcomes = append(outcomes, one)
		go func() {
			o := outcome{asks: a}
			o.err = s.ask(ctx, &o)
			one <- o
		}()
	}
	return outcomes
}

func collect(outcomes []<-chan outcome) (all []outcome) {
	for _, one := range outcomes {
		all = append(all, <-one)
	}
	return all
}

// ask sends a request and reads the answer, as far as the user stays.
func (s *stage) ask(ctx context.Context, o *outcome) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	request, err := newRequest(ctx, "http://proxy", o.asks)
	if err != nil {
		return err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	o.status, o.retryAfter = response.StatusCode, response.Header.Get("Retry-After")
	lines := bufio.NewScanner(response.Body)
	for words := 0; lines.Scan(); {
		if !strings.Contains(lines.Text(), strconv.Quote(word)) {
			continue
		}
		if words++; words == 1 {
			s.speaking <- struct{}{}
		}
		if words == o.leaves {
			return nil
		}
	}
	return lines.Err()
}

func newRequest(ctx context.Context, to string, a asks) (*http.Request, error) {
	body, err := json.Marshal(map[string]any{
		"model": a.model, "max_tokens": a.most, "stream": !a.plain,
		"messages": []any{map[string]any{"role": "user", "content": a.says}},
	})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to+"/v1/chat/completions", strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Api-Key", "sk-"+a.user)
	request.Header.Set("X-Request-Id", a.user+" "+a.says)
	return request, nil
}

// left returns what users or models have left that differs from what they used of so many tokens. Since they began, a
// minute's tokens refill in a minute.
func left(ctx context.Context, l *limit.Limiter, key gate.Key, name string, used, most int64, began time.Time) error {
	subject, err := gate.Subject(key, gate.Values{JSON: map[string]string{"model": name}, Stored: map[any]any{callKey{}: name}})
	if err != nil {
		return err
	}
	d, err := l.Peek(ctx, subject)
	if err != nil {
		return err
	}
	var tokens limit.State
	for s := range d.States() {
		if strings.HasSuffix(s.Policy, "-tokens") {
			tokens = s
		}
	}
	refilled := int64(time.Since(began)*time.Duration(most)/time.Minute) + 1
	least := max(most-used, 0)
	if tokens.Remaining < least || tokens.Remaining > max(most-used+refilled, 0) {
		return fmt.Errorf("%s has %d tokens left, want %d and no more than the %d that refilled", name, tokens.Remaining, least, refilled)
	}
	return nil
}

// pipes are connections within the process, so that a bubble knows who waits for them.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newPipes() pipes {
	closed := make(chan struct{})
	return pipes{make(chan net.Conn), closed, sync.OnceFunc(func() { close(closed) })}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	p.close()
	return nil
}

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) transport(t *testing.T) *http.Transport {
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		select {
		case p.conns <- there:
			return here, nil
		case <-p.closed:
			return nil, errors.New("connection refused")
		}
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// connect serves a handler to the transport that it returns.
func connect(t *testing.T, h http.Handler) *http.Transport {
	t.Helper()
	p := newPipes()
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(p) }()
	t.Cleanup(func() { server.Close() })
	return p.transport(t)
}

// newStage is a proxy in a bubble, with a model behind it unless that is down.
func newStage(t *testing.T, down bool) (*stage, *upstream) {
	t.Helper()
	l, err := newLimits(neaptest.New(t).Client())
	if err != nil {
		t.Fatal(err)
	}
	up := newUpstream(pace)
	to := connect(t, up)
	if down {
		gone := newPipes()
		gone.Close()
		to = gone.transport(t)
	}
	s := &stage{limits: l, ended: make(chan *call, 64), speaking: make(chan struct{}, 64)}
	proxy := newProxy(l, &url.URL{Scheme: "http", Host: "model"}, "key", to, func(c *call) { s.ended <- c })
	s.client = &http.Client{Transport: connect(t, proxy)}
	return s, up
}

// expect fails the test unless ann and the model are charged so many tokens in the end.
func (s *stage) expect(t *testing.T, used int64, began time.Time) {
	t.Helper()
	err := errors.Join(
		left(t.Context(), s.users, byUser, "ann", used, 1_000, began),
		left(t.Context(), s.models, byModel, "small", used, 2_000, began))
	if err != nil {
		t.Error(err)
	}
}

// TestStreams: what the model says reaches the client before it has said all.
func TestStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, up := newStage(t, false)
		outcomes := s.send(t.Context(), []asks{{user: "ann", model: "small", most: 100, says: "words=5&held=1"}})
		synctest.Wait()
		time.Sleep(time.Second)
		select {
		case <-s.speaking:
		default:
			t.Error("the client has got no word, want four while the model waits to say the fifth")
		}
		if len(outcomes[0]) > 0 || len(s.ended) > 0 {
			t.Error("the stream has ended, want it to wait for its last word")
		}
		up.release()
		if o := <-outcomes[0]; o.err != nil || o.status != 200 {
			t.Errorf("got %d, %v, want a 200 and the whole stream", o.status, o.err)
		}
	})
}

// TestSettles: each way to end is charged what was used.
func TestSettles(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]asks{
		"usage of a stream":      {says: "words=50", status: 200, answer: 50},
		"usage without a stream": {says: "words=50", plain: true, status: 200, answer: 50},
		"more than the estimate": {says: "words=50&thinks=500", status: 200, answer: 550},
		"hung up":                {says: "words=8&stalls=1", leaves: 7, status: 200, answer: 7},
		"broken off":             {says: "words=8&breaks=1", status: 200, answer: 7},
		"broken off at once":     {says: "words=1&breaks=1", status: 502, answer: 0},
		"the model failed":       {says: "fails=1", status: 502, answer: -1},
		"the upstream is down":   {says: "words=50", down: true, status: 502, answer: -1},
		"no words":               {says: "", status: 200, answer: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, _ := newStage(t, a.down)
				began := time.Now()
				a.user, a.model, a.most, a.down = "ann", "small", 300, false
				o := collect(s.send(t.Context(), []asks{a}))[0]
				c := <-s.ended
				want := int64(0)
				if a.answer >= 0 {
					want = c.prompt + a.answer
				}
				if broken := strings.HasPrefix(name, "broken off") && a.status == 200; o.status != a.status || (o.err != nil) != broken || c.used() != want {
					t.Errorf("got %d, %v and %d used, want %d and %d", o.status, o.err, c.used(), a.status, want)
				}
				s.expect(t, want, began)
			})
		})
	}
}

// TestADebtIsPaidFirst: whoever used more than there was is denied until that has refilled.
func TestADebtIsPaidFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := newStage(t, false)
		for i, want := range []int{200, 429} {
			if o := collect(s.send(t.Context(), []asks{{user: "ann", model: "small", most: 100, says: "words=20&thinks=1200"}}))[0]; o.status != want || o.err != nil {
				t.Errorf("request %d: got %d, %v, want %d", i, o.status, o.err, want)
			}
			<-s.ended // and settled
		}
	})
}

// TestHangsUpBeforeTheFirstWord: the model has read the prompt.
func TestHangsUpBeforeTheFirstWord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := newStage(t, false)
		began := time.Now()
		ctx, leave := context.WithCancel(t.Context())
		outcomes := s.send(ctx, []asks{{user: "ann", model: "small", most: 300, says: "words=1&stalls=1"}})
		synctest.Wait()
		leave()
		<-outcomes[0]
		c := <-s.ended
		if c.prompt == 0 || c.used() != c.prompt {
			t.Errorf("got %d used, want the %d of the prompt", c.used(), c.prompt)
		}
		s.expect(t, c.prompt, began)
	})
}

// TestTwoStreamsAtOnce: their estimates exceed what a user has, and the second waits until the first has settled. The third
// would wait for more than two seconds.
func TestTwoStreamsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := newStage(t, false)
		began := time.Now()
		var outcomes []<-chan outcome
		for _, says := range []string{"words=50", "words=51", "words=52"} {
			outcomes = append(outcomes, s.send(t.Context(), []asks{{user: "ann", model: "small", most: 900, says: says}})...)
			synctest.Wait()
		}
		took := map[string]time.Duration{}
		for range outcomes {
			c := <-s.ended
			if took[c.id] = 0; !c.began.IsZero() {
				took[c.id] = c.began.Sub(began)
			}
		}
		all := collect(outcomes)
		for i, want := range []int{200, 200, 429} {
			if all[i].status != want || all[i].err != nil || (want == 429) != (all[i].retryAfter != "") {
				t.Errorf("stream %d: got %d, %v and Retry-After %q, want %d", i, all[i].status, all[i].err, all[i].retryAfter, want)
			}
		}
		if first, second := took["ann words=50"], took["ann words=51"]; first > 100*time.Millisecond || second < 50*pace || second > 2*time.Second {
			t.Errorf("the streams began after %v and %v, want the second when the first has ended, within 2 s", first, second)
		}
		if waited := time.Since(began); waited > 3*time.Second {
			t.Errorf("all had ended after %v, want it within 3 s", waited)
		}
		s.expect(t, 3+50+3+51, began)
	})
}

// TestTheModelIsFull: whom the model's limit denies is charged no tokens of the user's own.
func TestTheModelIsFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, up := newStage(t, false)
		began := time.Now()
		var others []<-chan outcome
		for _, user := range []string{"bob", "cat"} {
			others = append(others, s.send(t.Context(), []asks{{user: user, model: "small", most: 900, says: "words=1&held=1"}})...)
			synctest.Wait()
		}
		if o := collect(s.send(t.Context(), []asks{{user: "ann", model: "small", most: 900, says: "words=2"}}))[0]; o.status != 429 || o.retryAfter == "" {
			t.Errorf("got %d with Retry-After %q, want a 429", o.status, o.retryAfter)
		}
		if waited := time.Since(began).Round(time.Millisecond); waited != 2*time.Second {
			t.Errorf("got an answer after %v, want it after 2 s", waited)
		}
		if err := left(t.Context(), s.users, byUser, "ann", 0, 1_000, began); err != nil {
			t.Error(err)
		}
		up.release()
		collect(others)
	})
}

// TestHangsUpInTheQueue: who was not served is charged nothing, and leaves its place.
func TestHangsUpInTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, up := newStage(t, false)
		first := s.send(t.Context(), []asks{{user: "ann", model: "small", most: 900, says: "words=1&held=1"}})
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		second := s.send(ctx, []asks{{user: "ann", model: "small", most: 900, says: "words=2"}})
		synctest.Wait()
		if n := s.users.Stats().Waiting; n != 1 {
			t.Errorf("got %d waiting, want the second", n)
		}
		leave()
		<-second[0]
		if c := <-s.ended; c.used() != 0 || s.users.Stats().Waiting != 0 {
			t.Errorf("got %d used and %d waiting, want none", c.used(), s.users.Stats().Waiting)
		}
		up.release()
		if o := <-first[0]; o.err != nil || o.status != 200 {
			t.Errorf("the first: got %d, %v, want a 200", o.status, o.err)
		}
	})
}

// TestRefuses what is no question, before the upstream is asked.
func TestRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := newStage(t, true)
		for _, c := range []struct {
			key, body string
			status    int
		}{
			{"", `{"model":"small"}`, 401},
			{"sk-", `{"model":"small"}`, 401},
			{"sk-ann", ``, 400},
			{"sk-ann", `{`, 400},
			{"sk-ann", `{"messages":[]}`, 400},
			{"sk-ann", `{"model":"small","max_tokens":-7}`, 400},
			{"sk-ann", `{"model":"small","max_tokens":9223372036854775807,"messages":[{"content":"neap"}]}`, 400},
			{"sk-ann", `{"model":"small","messages":[{"content":"` + strings.Repeat("neap", maxBody/4) + `"}]}`, 413},
			{"sk-ann", `{"model":"small","max_tokens":100000}`, 502}, // the estimate is no more than there is
		} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://proxy/v1/chat/completions", strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Authorization", "Bearer "+c.key)
			response, err := s.client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != c.status {
				t.Errorf("%.60s by %q: got %d, want %d", c.body, c.key, response.StatusCode, c.status)
			}
		}
	})
}

// TestTheLimitsAreShort: what a user of neap writes is limits.go.
func TestTheLimitsAreShort(t *testing.T) {
	t.Parallel()
	code, err := os.ReadFile("limits.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ = bytes.Cut(code, []byte("\n)\n")) // the imports
	files := token.NewFileSet()
	var s scanner.Scanner
	s.Init(files.AddFile("", files.Base(), len(code)), code, nil, 0)
	lines := map[int]bool{}
	for pos, kind, text := s.Scan(); kind != token.EOF; pos, kind, text = s.Scan() {
		if text != "\n" {
			lines[files.Position(pos).Line] = true
		}
	}
	if n := len(lines); n < 20 || n >= 40 {
		t.Errorf("limits.go has %d lines of code, want fewer than 40", n)
	}
}
