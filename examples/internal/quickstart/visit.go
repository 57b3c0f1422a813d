package quickstart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// visit sends requests to one framework's server, shows the answers and keeps
// what is not as expected. What it expects holds at any pace at which the
// requests of a step take less time than the window that they are counted in.
type visit struct {
	*screen

	framework  string
	url        string
	http       *http.Client
	shadowed   atomic.Int64 // what shadow policies would have denied
	faults     []error
	unanswered error // of the first request without an answer
}

func newVisit(out *screen, framework string) *visit {
	return &visit{screen: out, framework: framework, http: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 32},
		Timeout:   30 * time.Second,
	}}
}

// run returns all that was not as expected, and ends early without an answer.
func (v *visit) run(ctx context.Context, steps []step) error {
	for _, s := range steps {
		if s.run(v, ctx); v.unanswered != nil {
			return errors.Join(append(v.faults, fmt.Errorf("%s %w", v.framework, v.unanswered))...)
		}
	}
	return errors.Join(v.faults...)
}

// failed ends the visit if err is not nil: nothing more is sent, shown or checked.
// A step goes on to its end as if there were answers.
func (v *visit) failed(err error) bool {
	if err != nil && v.unanswered == nil {
		v.unanswered, v.screen = err, newScreen(io.Discard)
	}
	return v.unanswered != nil
}

// checkf shows a finding, which says what was found and what was expected.
func (v *visit) checkf(ok bool, format string, args ...any) {
	finding := fmt.Sprintf(format, args...)
	v.linef("  %s %s", v.mark(ok, finding), finding)
}

// mark keeps a finding that is not as expected.
func (v *visit) mark(ok bool, finding string) string {
	if ok {
		return v.green("✓")
	}
	if v.unanswered == nil {
		v.faults = append(v.faults, fmt.Errorf("%s %s", v.framework, strings.Join(strings.Fields(finding), " ")))
	}
	return v.red("✗")
}

// request is one to send.
type request struct {
	method, target, body string
	header               http.Header
}

// get is a request with these values of the API key header.
func get(target string, keys ...string) request {
	return request{method: http.MethodGet, target: target, header: http.Header{apiKeyHeader: keys}}
}

// answer is a response. The server decided between sent and received.
type answer struct {
	status         int
	header         http.Header
	body           string
	sent, received time.Time
}

func (v *visit) send(ctx context.Context, r request) (answer, error) {
	own, err := http.NewRequestWithContext(ctx, r.method, v.url+r.target, strings.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	own.Header = r.header.Clone()
	sent := time.Now()
	response, err := v.http.Do(own)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(text), sent, time.Now()}, err
}

// row sends a request n times, one after the other.
func (v *visit) row(ctx context.Context, n int, r request) []answer {
	answers := make([]answer, n)
	for i := 0; i < n && v.unanswered == nil; i++ {
		var err error
		answers[i], err = v.send(ctx, r)
		v.failed(err)
	}
	return answers
}

// ask sends a request once.
func (v *visit) ask(ctx context.Context, r request) answer { return v.row(ctx, 1, r)[0] }

// atOnce is how many requests a volley has.
const atOnce = 20

// volley sends a request many times at once, and orders the answers by their
// status.
func (v *visit) volley(ctx context.Context, r request) []answer {
	answers := make([]answer, atOnce)
	if v.unanswered == nil {
		v.failed(together(atOnce, func(i int) (err error) {
			answers[i], err = v.send(ctx, r)
			return err
		}))
	}
	slices.SortStableFunc(answers, func(a, b answer) int { return a.status - b.status })
	return answers
}

// together does n things at once. Its error is the first that there was.
func together(n int, do func(i int) error) error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = do(i)
		})
	}
	close(start)
	wg.Wait()
	return cmp.Or(errs...)
}

// count is how many of the answers have the status.
func count(answers []answer, status int) int64 {
	var n int64
	for _, a := range answers {
		if a.status == status {
			n++
		}
	}
	return n
}
