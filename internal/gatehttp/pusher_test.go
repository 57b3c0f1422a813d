package gatehttp

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// pushing is a writer around that of net/http, as others may write one.
type pushing struct{ usual }

func (pushing) Push(string, *http.PushOptions) error { return nil }

func TestPusherIsKept(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		own, ok := w.(usual)
		if !ok {
			t.Error("net/http's writer cannot do what it could, want a writer of the usual abilities")
			return
		}
		for _, writer := range []http.ResponseWriter{own, pushing{own}} {
			_, had := writer.(http.Pusher)
			if _, has := NewRecorder(w.Header(), http.MethodGet, 0).Wrap(writer).(http.Pusher); has != had {
				t.Errorf("%T: got that it pushes: %t, want %t", writer, has, had)
			}
		}
	}))
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}
