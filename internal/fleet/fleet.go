// Package fleet tests what holds across the frameworks: instances of one
// service behind different ones, beside each other. Modules that have further
// frameworks run the same tests with theirs.
package fleet

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/redistest"
)

// Fleet has a framework under each name.
type Fleet map[string]Framework

// Framework serves POST /orders/{id} by its adapter, until the test ends.
type Framework struct {
	Instance func(tb testing.TB, g gate.Gate, do Work) (address string) // behind a gate
	Endpoint func(tb testing.TB, e gate.Endpoint) (address string)
}

// Work is what the handler of an instance does, in any framework: it adds lines
// of header, and returns a status and a body.
type Work func(ctx context.Context, add func(name, value string)) (status int, body string)

// Main stands in TestMain: tests start processes that serve.
func (f Fleet) Main(m *testing.M) {
	gin.SetMode(gin.TestMode)
	redistest.RunChild(map[string]func(words []string){"callback": f.callbackChild})
	redistest.Main(m)
}

// Test runs all tests.
func (f Fleet) Test(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"ReplayedBehindAnother":                f.testReplayedBehindAnother,
		"OnceBehindAll":                        f.testOnceBehindAll,
		"OneAtATimeAndEachOnce":                f.testOneAtATimeAndEachOnce,
		"ProvidersGetTheirBytes":               f.testProvidersGetTheirBytes,
		"NothingIsAcknowledgedThatIsNotBooked": f.testNothingIsAcknowledgedThatIsNotBooked,
		"OneRunInManyProcesses":                f.testOneRunInManyProcesses,
	} {
		t.Run(name, test)
	}
}

func (f Fleet) names() []string { return slices.Sorted(maps.Keys(f)) }

// answer is a response but for what belongs to one connection, or moment.
type answer struct {
	status int
	lines  string
	body   string
}

// order posts to an instance.
func order(address, target, key, body string) (answer, error) {
	return post(address, target, body, "Idempotency-Key", key, "X-Account", "alice", "Content-Type", "application/json")
}

// client has connections of its own: each httptest.Server that ends closes those of
// http.DefaultClient, also for a request that is about to be sent.
var client = &http.Client{Transport: &http.Transport{}}

func post(address, target, body string, header ...string) (answer, error) {
	r, err := http.NewRequest(http.MethodPost, "http://"+address+target, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for pair := range slices.Chunk(header, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	response, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(response.Header)) {
		if !slices.Contains([]string{"Connection", "Content-Length", "Date", "Server"}, name) {
			lines.WriteString(name + ": " + strings.Join(response.Header[name], " | ") + "\n")
		}
	}
	return answer{response.StatusCode, lines.String(), string(all)}, err
}
