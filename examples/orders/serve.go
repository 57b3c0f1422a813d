package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/ginlimit"
	"github.com/neap-go/neap/nethttp"
)

// serve is what each process of the shop does.
func serve(ctx context.Context, framework, url, file string, dies bool) error {
	opts, err := redis.ParseURL(url)
	if err != nil { // its text repeats the password
		return errors.New("-redis is not the URL of a Redis: write it like redis://localhost:6379")
	}
	opts.ContextTimeoutEnabled = true
	guard, err := idempotency.New(redis.NewClient(opts), "orders", idempotency.Retry{}, &idempotency.Options{
		Lease:     2 * time.Second,  // how soon another takes over from a process that died
		Retention: 10 * time.Minute, // in a real shop longer than any client repeats
	})
	if err != nil {
		return err
	}
	customer := gate.ByHeader("X-Api-Key") // in a real shop the account that authentication has found
	once := gate.Idempotent(guard, customer, nil)

	db, err := open(ctx, file)
	if err != nil {
		return err
	}
	s := &shop{db: db, booked: func() {
		if self, err := os.FindProcess(os.Getpid()); dies && err == nil {
			_ = self.Kill() // SIGKILL: nothing runs after it
			select {}
		}
	}}
	handler := onNetHTTP(s, once)
	if framework == "Gin" {
		handler = onGin(s, once)
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + ln.Addr().String())
	return http.Serve(ln, handler)
}

func onNetHTTP(s *shop, once gate.Gate) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /orders", nethttp.Middleware(once)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var o order
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil || o.Item == "" {
			http.Error(w, "the body names no item", http.StatusBadRequest)
			return
		}
		o, err := s.place(r.Context(), o)
		if err != nil {
			http.Error(w, "the order may not have been placed", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Location", fmt.Sprint("/orders/", o.ID))
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(o)
	})))
	return mux
}

func onGin(s *shop, once gate.Gate) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.POST("/orders", ginlimit.Middleware(once), func(c *gin.Context) {
		var o order
		if err := c.ShouldBindJSON(&o); err != nil || o.Item == "" {
			c.String(http.StatusBadRequest, "the body names no item\n")
			return
		}
		o, err := s.place(c.Request.Context(), o)
		if err != nil {
			c.String(http.StatusInternalServerError, "the order may not have been placed\n")
			return
		}
		c.Header("Location", fmt.Sprint("/orders/", o.ID))
		c.JSON(http.StatusCreated, o)
	})
	return engine
}
