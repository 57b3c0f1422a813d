package ginlimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/ginlimit"
)

// TestHandleContextRefunds: Engine.HandleContext takes a request through the
// engine's gates a second time; each time is given back once.
func TestHandleContextRefunds(t *testing.T) {
	t.Parallel()
	everyone := func(gate.Request) (string, error) { return "everyone", nil }
	l, err := limit.NewLocal("all", []limit.Policy{limit.FixedWindow{Limit: 100, Window: time.Hour}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.TakeN(context.Background(), "everyone", 50); err != nil {
		t.Fatal(err)
	}
	engine := gin.New()
	engine.Use(ginlimit.Middleware(gate.RateLimit(l, everyone, &gate.RateLimitOptions{Count: gate.OnlyFailures})))
	engine.GET("/from/:to", func(c *gin.Context) {
		c.Request.URL.Path = "/" + c.Param("to")
		engine.HandleContext(c)
	})
	engine.GET("/success", func(c *gin.Context) { c.Status(200) })
	engine.GET("/failure", func(c *gin.Context) { c.Status(401) })
	engine.GET("/refused", ginlimit.Middleware(gate.RateLimit(l, gate.ByHeader("X-Api-Key"), nil)))
	for _, c := range []struct {
		target string
		status int
		used   int64
	}{
		{"/from/success", 200, 50}, {"/from/refused", 400, 50}, {"/refused", 400, 50}, {"/from/failure", 401, 52}, {"/from/refused", 400, 52},
	} {
		w := request(engine, c.target)
		d, err := l.Peek(context.Background(), "everyone")
		if used := d.Limit - d.Remaining; err != nil || w.Code != c.status || used != c.used {
			t.Errorf("%s: got %d, and %d used, %v; want %d and %d", c.target, w.Code, used, err, c.status, c.used)
		}
	}
}
