package quickstart

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/neap-go/neap/examples/internal/host"
	"github.com/neap-go/neap/nethttp"
)

// Framework makes a server of the routes.
type Framework struct {
	Name  string // as -framework takes it
	Title string
	Serve func([]Route) host.Server // nil: the program that [Build] makes serves them
}

func names(frameworks []Framework) []string {
	all := make([]string, len(frameworks))
	for i, f := range frameworks {
		all[i] = f.Name
	}
	return all
}

// listen serves the routes by a framework.
func (f Framework) listen(ctx context.Context, addr string, routes []Route) (*host.Host, error) {
	h, err := host.Listen(ctx, addr, f.Serve(routes))
	if err != nil {
		return nil, fmt.Errorf("%w; choose another address with -addr", err)
	}
	return h, nil
}

// NetHTTP is the framework that needs no other module.
var NetHTTP = Framework{"nethttp", "net/http", func(routes []Route) host.Server {
	mux := http.NewServeMux()
	for _, e := range routes {
		h := nethttp.Middleware(e.Gate)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := func() ([]byte, error) { return io.ReadAll(r.Body) }
			answer := e.Work(r.Context(), Asked{r.URL.RawQuery, body})
			for name, value := range answer.Header {
				w.Header().Set(name, value)
			}
			w.Header().Set("Content-Type", answer.ContentType)
			w.WriteHeader(answer.Status)
			_, _ = io.WriteString(w, answer.Text)
		}))
		for _, method := range e.Methods() {
			mux.Handle(method+" "+e.Path, h)
		}
	}
	return host.HTTP(mux)
}}

// Colons writes "/users/{id}" as "/users/:id".
func Colons(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}
