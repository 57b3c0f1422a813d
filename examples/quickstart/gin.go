package main

import (
	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/examples/internal/host"
	"github.com/neap-go/neap/ginlimit"
)

func newGin(endpoints []endpoint) host.Server {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.UseRawPath = true // "%2F" in a parameter is no slash
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false
	for _, e := range endpoints {
		engine.Match(e.methods, colons(e.path), ginlimit.Middleware(e.gate),
			func(c *gin.Context) {
				r := e.work(c.Request.Context(), asked{c.Request.URL.RawQuery, c.GetRawData})
				for name, value := range r.header {
					c.Header(name, value)
				}
				c.Data(r.status, r.contentType, []byte(r.text))
			})
	}
	return host.HTTP(engine)
}
