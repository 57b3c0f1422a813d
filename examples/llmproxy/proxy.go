package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strconv"
	"time"

	"github.com/neap-go/neap/nethttp"
)

// route is that of the API that everybody speaks.
const route = "POST /v1/chat/completions"

// newProxy serves what the limits let in from an upstream, to which it sends its own key. A nil transport is
// http.DefaultTransport.
func newProxy(l limits, upstream *url.URL, key string, transport http.RoundTripper, ended func(*call)) http.Handler {
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		ErrorLog:  log.New(io.Discard, "", 0), // of clients that go away
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(upstream)
			p.Out.Header.Set("Authorization", "Bearer "+key)
			p.Out.Header.Del("X-Api-Key")
			p.Out.Header.Del("Accept-Encoding") // the meter reads plain text
			askForUsage(p.Out)
			c := callOf(p.In.Context())
			c.began = time.Now()
			p.Out = p.Out.WithContext(httptrace.WithClientTrace(p.Out.Context(), &httptrace.ClientTrace{
				WroteHeaders: func() { c.sent.Store(true) },
			}))
		},
		ModifyResponse: func(response *http.Response) error {
			c := callOf(response.Request.Context())
			c.failed = response.StatusCode >= 400
			kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")) // none is no stream
			response.Body = &meter{ReadCloser: response.Body, call: c, stream: kind == "text/event-stream"}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, "the upstream does not answer", http.StatusBadGateway)
		},
	}
	mux := http.NewServeMux()
	mux.Handle(route, authenticate(ended, nethttp.Middleware(l.gate())(proxy)))
	return mux
}

// askForUsage has a stream end with the usage, whether or not the client asks for it.
func askForUsage(r *http.Request) {
	var fields map[string]json.RawMessage
	body, err := io.ReadAll(r.Body) // the gates have it already
	if err != nil || json.Unmarshal(body, &fields) != nil {
		return
	}
	if string(fields["stream"]) == "true" {
		fields["stream_options"] = json.RawMessage(`{"include_usage":true}`)
		if asking, err := json.Marshal(fields); err == nil {
			body = asking
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
}

// meter reads an answer as it passes, and holds nothing up.
type meter struct {
	io.ReadCloser

	call   *call
	stream bool
	rest   []byte // that is no whole line
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	m.rest = append(m.rest, p[:n]...)
	for m.stream {
		line, rest, whole := bytes.Cut(m.rest, []byte("\n"))
		if !whole {
			break
		}
		m.call.hear(bytes.TrimPrefix(line, []byte("data:")))
		m.rest = rest
	}
	if err == io.EOF {
		m.call.hear(bytes.TrimPrefix(m.rest, []byte("data:")))
		m.rest = nil
	}
	return n, err
}
