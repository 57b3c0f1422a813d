package ginlimit_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/ginlimit"
	"github.com/neap-go/neap/internal/gatefake"
)

func request(engine *gin.Engine, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	engine.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
	return w
}

// served is what a client gets for "/" from a real server, which has ended by then.
func served(t *testing.T, engine *gin.Engine) (status int, body string) {
	t.Helper()
	server := httptest.NewServer(engine)
	defer server.Close()
	response, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(all)
}

func TestZeroPassLeavesTheWriter(t *testing.T) {
	t.Parallel()
	engine := gin.New()
	var outer, inner gin.ResponseWriter
	engine.GET("/", func(c *gin.Context) { outer = c.Writer },
		ginlimit.Middleware(gatefake.Func(func(gate.Request) gate.Pass { return gate.Pass{} })),
		func(c *gin.Context) { inner = c.Writer })
	request(engine, "/")
	if outer == nil || outer != inner {
		t.Errorf("the writer became a %T, want the one from before, a %T", inner, outer)
	}
}

func TestGinsWriterReportsWhatWasWritten(t *testing.T) {
	t.Parallel()
	l := &gatefake.Leaving{T: t}
	engine := gin.New()
	var outer gin.ResponseWriter
	engine.Use(func(c *gin.Context) {
		outer = c.Writer
		c.Next()
		if c.Writer != outer {
			t.Errorf("after the gate the writer is a %T, want the one from before, a %T", c.Writer, outer)
		}
	})
	engine.GET("/", ginlimit.Middleware(l), func(c *gin.Context) {
		if c.Writer.Written() || c.Writer.Size() != -1 {
			t.Errorf("before the first byte: got written %t, size %d, want false, -1",
				c.Writer.Written(), c.Writer.Size())
		}
		c.Status(404)
		c.Status(201)
		_, _ = c.Writer.WriteString("two ")
		_, _ = c.Writer.Write([]byte("parts"))
		c.Status(500)
		if !c.Writer.Written() || c.Writer.Size() != 9 || c.Writer.Status() != 201 {
			t.Errorf("after it: got written %t, size %d, status %d, want true, 9, 201",
				c.Writer.Written(), c.Writer.Size(), c.Writer.Status())
		}
		if err := http.NewResponseController(c.Writer).SetWriteDeadline(time.Time{}); err != nil {
			t.Errorf("setting a deadline of the connection: got %v, want no error", err)
		}
	})
	served(t, engine)
	l.Saw(201, "two parts", false)
	if outer.Status() != 201 || outer.Size() != 9 {
		t.Errorf("middleware outside finds the status %d and the size %d, want 201 and 9",
			outer.Status(), outer.Size())
	}
}

func TestStatusAlone(t *testing.T) {
	t.Parallel()
	l := &gatefake.Leaving{T: t}
	engine := gin.New()
	engine.GET("/", ginlimit.Middleware(l), func(c *gin.Context) { c.Status(202) })
	if w := request(engine, "/"); w.Code != 202 {
		t.Errorf("got %d, want 202", w.Code)
	}
	l.Saw(202, "", false)
}

// If a handler writes an answer and reports an error, the answer is not left to
// middleware outside.
func TestErrorAndAnAnswer(t *testing.T) {
	t.Parallel()
	l := &gatefake.Leaving{T: t}
	engine := gin.New()
	engine.GET("/", ginlimit.Middleware(l), func(c *gin.Context) {
		_ = c.Error(errors.New("beside"))
		c.String(409, "conflict")
	})
	request(engine, "/")
	l.Saw(409, "conflict", false)
}

// An error that middleware outside has reported before is not the handler's.
func TestErrorOfOuterMiddleware(t *testing.T) {
	t.Parallel()
	l := &gatefake.Leaving{T: t}
	engine := gin.New()
	engine.GET("/", func(c *gin.Context) { _ = c.Error(errors.New("before")) },
		ginlimit.Middleware(l), func(c *gin.Context) { c.Status(202) })
	request(engine, "/")
	l.Saw(202, "", false)
}

// Gin writes its own 404 after every middleware has returned.
func TestGinsOwn404(t *testing.T) {
	t.Parallel()
	l := &gatefake.Leaving{T: t}
	engine := gin.New()
	engine.Use(ginlimit.Middleware(l))
	if w := request(engine, "/nowhere"); w.Code != 404 || w.Body.String() != "404 page not found" {
		t.Errorf("got %d %q, want 404 with Gin's own text", w.Code, w.Body)
	}
	l.SawNil()

	own := &gatefake.Leaving{T: t}
	engine = gin.New()
	engine.Use(ginlimit.Middleware(own))
	engine.NoRoute(func(c *gin.Context) { c.String(404, "ours") })
	request(engine, "/nowhere")
	own.Saw(404, "ours", false)
}

// HandleContext writes to the writer below every wrapped one.
func TestHandleContext(t *testing.T) {
	t.Parallel()
	l := &gatefake.Leaving{T: t}
	engine := gin.New()
	engine.GET("/old", ginlimit.Middleware(l), func(c *gin.Context) {
		c.Request.URL.Path = "/new"
		engine.HandleContext(c)
	})
	engine.GET("/new", func(c *gin.Context) { c.String(203, "new") })
	if w := request(engine, "/old"); w.Code != 203 || w.Body.String() != "new" {
		t.Errorf("got %d %q, want 203 \"new\"", w.Code, w.Body)
	}
	l.Saw(203, "", true)
}

// If a handler gives up behind HandleContext, HandleContext sends an empty 200. The
// handler has not answered.
func TestHandleContextThatGivesUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		new  gin.HandlerFunc
		left int64
	}{
		"Nothing":  {func(*gin.Context) {}, 1},
		"NoAnswer": {func(c *gin.Context) { c.Status(200); c.Writer.WriteHeaderNow() }, 1},
		"Answer":   {func(c *gin.Context) { c.String(200, "nobody listens") }, 2},
		"Nobody":   {func(c *gin.Context) { c.Status(204) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limited, err := limit.NewLocal("logins", []limit.Policy{limit.FixedWindow{Limit: 2, Window: time.Hour}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			everyone := func(gate.Request) (string, error) { return "everyone", nil }
			ctx, hangUp := context.WithCancel(t.Context())
			engine := gin.New()
			engine.GET("/old", ginlimit.Middleware(gate.RateLimit(limited, everyone, &gate.RateLimitOptions{Count: gate.OnlyFailures})),
				func(c *gin.Context) {
					c.Request.URL.Path = "/new"
					hangUp()
					engine.HandleContext(c)
				})
			engine.GET("/new", c.new)
			engine.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/old", nil).WithContext(ctx))
			if d, err := limited.Peek(t.Context(), "everyone"); err != nil || d.Remaining != c.left {
				t.Errorf("%d permits are left, %v; want %d", d.Remaining, err, c.left)
			}
		})
	}
}

func TestEarlyHints(t *testing.T) {
	t.Parallel()
	l := &gatefake.Leaving{T: t}
	engine := gin.New()
	engine.GET("/", ginlimit.Middleware(l), func(c *gin.Context) {
		c.Header("Link", "</style.css>; rel=preload")
		c.Status(http.StatusEarlyHints)
		c.Writer.WriteHeaderNow()
		_, _ = c.Writer.WriteString("body")
	})
	if status, body := served(t, engine); status != 200 || body != "body" {
		t.Errorf("got %d %q, want 200 \"body\"", status, body)
	}
	l.Saw(200, "body", false)
}

// A reply keeps all handlers behind the gate from running, not only the next one, and Gin
// adds no 404 body to it.
func TestReplyAborts(t *testing.T) {
	t.Parallel()
	refusing := ginlimit.Middleware(gatefake.Func(func(gate.Request) gate.Pass {
		return gate.Pass{Reply: &gate.Reply{Status: 404}}
	}))
	engine := gin.New()
	engine.Use(refusing)
	never := func(*gin.Context) { t.Error("a handler behind the gate ran, want none to run") }
	engine.GET("/", never, never)
	for _, method := range []string{"GET", "HEAD"} {
		for _, target := range []string{"/", "/nowhere"} {
			w := httptest.NewRecorder()
			engine.ServeHTTP(w, httptest.NewRequest(method, target, nil))
			if w.Code != 404 || w.Body.Len() > 0 || w.Header().Get("Content-Type") != "" {
				t.Errorf("%s %s: got %d %v %q, want 404 with neither a body nor a Content-Type",
					method, target, w.Code, w.Header(), w.Body)
			}
		}
	}
}

// The endpoint's answer is not an abort, because middleware outside may log aborts.
func TestHandlerDoesNotAbort(t *testing.T) {
	t.Parallel()
	engine := gin.New()
	engine.Use(func(c *gin.Context) {
		c.Next()
		if c.IsAborted() {
			t.Error("the request was aborted, want it to end as it is")
		}
	})
	engine.POST("/callback", ginlimit.Handler(gatefake.Endpoint(func(gate.Request) gate.Reply {
		return gate.Reply{Status: 200, Body: []byte("success")}
	})))
	w := httptest.NewRecorder()
	engine.ServeHTTP(w, httptest.NewRequest("POST", "/callback", strings.NewReader("{}")))
	if w.Code != 200 || w.Body.String() != "success" {
		t.Errorf("got %d %q, want 200 and the body \"success\"", w.Code, w.Body)
	}
}

// The server removes the files of the request that it made, and not those of a copy.
func TestMultipartFormReachesTheServer(t *testing.T) {
	t.Parallel()
	engine := gin.New()
	engine.POST("/", ginlimit.Middleware(gatefake.Func(func(q gate.Request) gate.Pass {
		return gate.Pass{Context: context.WithValue(q.Context(), gatefake.Leaving{}, 1)}
	})), func(c *gin.Context) {
		if _, err := c.MultipartForm(); err != nil {
			t.Error(err)
		}
	})
	r := httptest.NewRequest("POST", "/", strings.NewReader("--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--x--\r\n"))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	engine.ServeHTTP(httptest.NewRecorder(), r)
	if r.MultipartForm == nil || r.MultipartForm.Value["a"] == nil {
		t.Errorf("the request has the form %v, want one with the field a", r.MultipartForm)
	}
}

// TestAdmittedWithoutACopy: a limit passes on the request that it got.
func TestAdmittedWithoutACopy(t *testing.T) {
	t.Parallel()
	l, err := limit.NewLocal("all", []limit.Policy{limit.FixedWindow{Limit: 1e6, Window: time.Hour}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	everyone := func(gate.Request) (string, error) { return "everyone", nil }
	engine := gin.New()
	var outer, inner *http.Request
	engine.GET("/", func(c *gin.Context) { outer = c.Request },
		ginlimit.Middleware(gate.RateLimit(l, everyone, nil)),
		func(c *gin.Context) { inner = c.Request })
	for range 1000 { // the first of a gate are marked, to see whether it is mounted twice
		request(engine, "/")
	}
	if w := request(engine, "/"); w.Code != 200 || outer == nil || outer != inner {
		t.Errorf("got %d, and a copy of the request: %t, want 200 and the request itself", w.Code, outer != inner)
	}
}

// TestRefusedInHandleContext: Engine.HandleContext takes a request through the engine's
// gates a second time. Each time counts, and gates outside recognize a refusal.
func TestRefusedInHandleContext(t *testing.T) {
	t.Parallel()
	l := &gatefake.Leaving{T: t}
	entered := 0
	engine := gin.New()
	engine.Use(ginlimit.Middleware(gatefake.Func(func(q gate.Request) gate.Pass {
		if entered++; entered == 1 {
			return l.Enter(q)
		}
		return gate.Pass{}
	})))
	engine.GET("/from", func(c *gin.Context) {
		c.Request.URL.Path = "/refused"
		engine.HandleContext(c)
	})
	engine.GET("/refused", ginlimit.Middleware(gatefake.Func(func(gate.Request) gate.Pass {
		return gate.Pass{Reply: &gate.Reply{Status: 409, Body: []byte("no"), Refused: true}}
	})))
	if w := request(engine, "/from"); w.Code != 409 || entered != 2 {
		t.Errorf("got %d, and the engine's gate was asked %d times, want 2", w.Code, entered)
	}
	l.Saw(409, "", true)
	if !l.Reply.Refused {
		t.Error("Leave saw Refused false, want true")
	}
}
