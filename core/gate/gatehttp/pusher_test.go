package gatehttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate/gatehttp"
)

// http1 is what net/http's own writer of HTTP/1 can do.
type http1 interface {
	http.ResponseWriter
	http.Flusher
	http.Hijacker
	http.CloseNotifier //nolint:staticcheck // deprecated, and still asked for
	io.ReaderFrom
	io.StringWriter
	FlushError() error
	SetReadDeadline(deadline time.Time) error
	SetWriteDeadline(deadline time.Time) error
	EnableFullDuplex() error
}

// pushing is somebody's own writer around it.
type pushing struct{ http1 }

func (pushing) Push(string, *http.PushOptions) error { return nil }

func TestAWriterThatPushesStillDoes(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		own, ok := w.(http1)
		if !ok {
			t.Error("net/http's writer cannot do what it could")
			return
		}
		for _, writer := range []http.ResponseWriter{own, pushing{own}} {
			_, had := writer.(http.Pusher)
			if _, has := gatehttp.NewRecorder(w.Header(), http.MethodGet, 0).Wrap(writer).(http.Pusher); has != had {
				t.Errorf("%T: it pushes: %t, want %t", writer, has, had)
			}
		}
	}))
	defer srv.Close()
	resp, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}
