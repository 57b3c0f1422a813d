package neighbours

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	klog "github.com/go-kratos/kratos/v2/log"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/gatefake"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	klog.SetLogger(klog.NewStdLogger(io.Discard))
	os.Exit(m.Run())
}

// atMost is a limit of so many requests for each subject.
func atMost(t *testing.T, most int64) *limit.Limiter {
	t.Helper()
	l, err := limit.NewLocal("test", []limit.Policy{limit.FixedWindow{Limit: most, Window: time.Hour}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// call is a request, and the status it must get.
type call struct {
	what   string
	target string // the path, behind the method if that is not GET
	header http.Header
	peer   string // of the socket; "" is 192.0.2.1
	status int
}

// exchange sends the calls one after the other.
func exchange(t *testing.T, h http.Handler, calls ...call) {
	t.Helper()
	for i, c := range calls {
		method, path, given := strings.Cut(c.target, " ")
		if !given {
			method, path = "GET", method
		}
		r := httptest.NewRequest(method, path, nil)
		maps.Copy(r.Header, c.header)
		if c.peer != "" {
			r.RemoteAddr = c.peer + ":40000"
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != c.status {
			t.Errorf("call %d, %s: got %d, want %d", i, c.what, w.Code, c.status)
		}
	}
}

func line(name, value string) http.Header {
	h := http.Header{}
	h.Set(name, value)
	return h
}

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

// told answers each request with the key that it has, or why it has none.
func told(key gate.Key) gate.Gate {
	return gatefake.Func(func(q gate.Request) gate.Pass {
		text, err := key(q)
		if err != nil {
			text = err.Error()
		}
		return gate.Pass{Reply: &gate.Reply{Status: http.StatusOK, Body: []byte(text)}}
	})
}

// keyOf is what such a gate tells of a request for the path.
func keyOf(h http.Handler, path string) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Body.String()
}
