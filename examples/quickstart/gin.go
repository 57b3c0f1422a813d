package main

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/ginlimit"
)

func newGin(endpoints []endpoint) server {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.UseRawPath = true // "%2F" in a parameter is no slash
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false
	for _, e := range endpoints {
		engine.Match([]string{http.MethodGet, http.MethodHead}, colons(e.path), ginlimit.Middleware(e.gate),
			func(c *gin.Context) {
				status, text := e.work(c.Request.Context(), c.Request.URL.RawQuery)
				c.Data(status, contentType, []byte(text))
			})
	}
	return newHTTPServer(engine)
}
