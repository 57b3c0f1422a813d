package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/neap-go/neap/examples/internal/host"
)

// asks is a request of the play, and what should come of it.
type asks struct {
	user, model string
	most        int64  // its max_tokens
	says        string // to the model

	leaves int  // after so many words; 0 stays to the end
	plain  bool // it asks for no stream
	down   bool // it asks the instance whose upstream is down

	status int
	answer int64 // tokens that it is charged beside its prompt, or -1 if it is charged nothing
	what   string
}

// The users of the play. Those of begin are in mid-stream while the others come, and end when queue waits for them.
var (
	begin = []asks{
		{user: "ann", model: "small", most: 900, says: "words=20&held=1", status: 200, answer: 20, what: "settled to less"},
		{user: "gus", model: "large", most: 900, says: "words=20&held=1", status: 200, answer: 20, what: "settled to less"},
		{user: "hal", model: "large", most: 900, says: "words=20&held=1", status: 200, answer: 20, what: "settled to less"},
	}
	meanwhile = []asks{
		{user: "bob", model: "tiny", most: 500, says: "words=60", status: 200, answer: 60, what: "settled to less"},
		{user: "cat", model: "nano", most: 100, says: "words=20&thinks=1200", status: 200, answer: 1220, what: "used more: in debt"},
		{user: "dan", model: "nano", most: 200, says: "words=6&stalls=1", leaves: 5, status: 200, answer: 5, what: "hung up after 5 words"},
		{user: "eve", model: "nano", most: 200, says: "fails=1", status: 502, answer: -1, what: "the model failed"},
		{user: "fay", model: "nano", most: 200, says: "words=20", down: true, status: 502, answer: -1, what: "the upstream is down"},
		{user: "kim", model: "tiny", most: 200, says: "words=30", plain: true, status: 200, answer: 30, what: "no stream"},
		{user: "lea", model: "tiny", most: 40, says: "words=40", status: 200, answer: 40, what: "as estimated"},
	}
	again = []asks{
		{user: "cat", model: "nano", most: 100, says: "words=20", status: 429, answer: -1, what: "pays the debt first"},
	}
	queue = []asks{
		{user: "ann", model: "small", most: 900, says: "words=10", status: 200, answer: 10, what: "waited for ann's first"},
		{user: "ivy", model: "large", most: 900, says: "words=10", status: 200, answer: 10, what: "waited for gus and hal"},
		{user: "jim", model: "large", most: 900, says: "words=10", status: 200, answer: 10, what: "waited behind ivy"},
	}
)

// outcome is what became of one.
type outcome struct {
	asks

	status     int
	retryAfter string
	call       *call // as the proxy has it
	err        error
}

// stage is where the play happens.
type stage struct {
	limits

	proxy, down string // URLs
	client      *http.Client
	ended       chan *call
	speaking    chan struct{} // gets one for each stream that has begun
}

// patience is for a machine that has much else to do. A play takes two seconds.
const patience = time.Minute

// play has the users come, and says what is not as it should be.
func play(ctx context.Context, l limits, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s := &stage{limits: l, client: &http.Client{Transport: &http.Transport{}}, ended: make(chan *call, 64), speaking: make(chan struct{}, 64)}
	defer s.client.CloseIdleConnections()
	up := newUpstream(pace)
	defer up.release()
	var hosts []*host.Host
	defer func() {
		for _, h := range hosts {
			_ = h.Stop(ctx, time.Second) // all has been told by then
		}
	}()
	start := func(h *host.Host, err error) (string, error) {
		if err != nil {
			return "", err
		}
		hosts = append([]*host.Host{h}, hosts...) // the proxies are stopped first
		return h.URL, nil
	}
	model, err := start(host.Listen(ctx, "127.0.0.1:0", host.HTTP(up)))
	if err != nil {
		return err
	}
	tell := func(c *call) { s.ended <- c }
	if s.proxy, err = start(listen(ctx, "127.0.0.1:0", l, model, tell)); err != nil {
		return err
	}
	gone, err := host.Listen(ctx, "127.0.0.1:0", host.HTTP(up))
	if err != nil {
		return err
	}
	if err := gone.Stop(ctx, time.Second); err != nil { // nobody listens there any more
		return err
	}
	if s.down, err = start(listen(ctx, "127.0.0.1:0", l, gone.URL, tell)); err != nil {
		return err
	}
	began := time.Now()
	outcomes, released, err := s.perform(ctx, up)
	if err != nil {
		return err
	}
	return s.judge(ctx, outcomes, began, released, out)
}

// perform sends all requests, and has the first streams end when the last requests are in the queues.
func (s *stage) perform(ctx context.Context, up *upstream) (all []outcome, released time.Time, err error) {
	first := s.send(ctx, begin)
	for range begin {
		select {
		case <-s.speaking:
		case <-ctx.Done():
			return nil, released, errors.New("the first streams have not begun")
		}
	}
	others := collect(s.send(ctx, meanwhile))
	others = append(others, collect(s.send(ctx, again))...)
	var waiting []<-chan outcome
	for i, q := range queue {
		waiting = append(waiting, s.send(ctx, []asks{q})...)
		for s.users.Stats().Waiting != 1 || s.models.Stats().Waiting != i {
			if ctx.Err() != nil {
				return nil, released, fmt.Errorf("%s does not wait", q.user)
			}
			time.Sleep(time.Millisecond)
		}
	}
	time.Sleep(300 * time.Millisecond) // so that the table shows who waited
	released = time.Now()
	up.release()
	all = append(collect(first), others...)
	all = append(all, collect(waiting)...)
	calls := map[string]*call{}
	for range all {
		select {
		case c := <-s.ended:
			calls[c.id] = c
		case <-ctx.Done():
			return nil, released, errors.New("not all calls have ended")
		}
	}
	for i := range all {
		all[i].call = calls[all[i].id()]
	}
	return all, released, nil
}

func (a *asks) id() string { return a.user + " " + a.says }

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
	to := s.proxy
	if o.down {
		to = s.down
	}
	request, err := newRequest(ctx, to, o.asks)
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
	request.Header.Set("X-Request-Id", a.id())
	return request, nil
}

// judge prints what became of all, and returns what should not have.
func (s *stage) judge(ctx context.Context, all []outcome, began, released time.Time, out io.Writer) error {
	var faults []error
	wrong := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "user\tmodel\tanswer\testimated\tused\twaited\t")
	users, models := map[string]int64{}, map[string]int64{}
	for _, o := range all {
		c := o.call
		if c == nil || o.err != nil {
			wrong("%s: heard of by the proxy: %t, error: %w", o.id(), c != nil, o.err)
			continue
		}
		waited, want := time.Duration(0), int64(0)
		if !c.began.IsZero() {
			waited = c.began.Sub(c.came).Round(10 * time.Millisecond)
		}
		if o.answer >= 0 {
			want = c.prompt + o.answer
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%v\t%s\n", o.user, o.model, o.status, c.prompt+c.most, c.used(), waited, o.what)
		switch {
		case o.status != o.asks.status:
			wrong("%s: the answer is %d, want %d", o.id(), o.status, o.asks.status)
		case c.used() != want:
			wrong("%s: used %d, want %d", o.id(), c.used(), want)
		case (o.status == http.StatusTooManyRequests) != (o.retryAfter != ""):
			wrong("%s: a %d has the Retry-After %q", o.id(), o.status, o.retryAfter)
		case strings.HasPrefix(o.what, "waited") && c.began.Before(released):
			wrong("%s: did not wait", o.id())
		}
		users[o.user] += want
		models[o.model] += want
	}
	err := errors.Join(table.Flush(),
		left(ctx, out, s.users, byUser, "user", users, 1_000, began),
		left(ctx, out, s.models, byModel, "model", models, 2_000, began))
	if err := errors.Join(append(faults, err)...); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nas it should be: each was charged what it used, and what refills since then is left too")
	return nil
}
