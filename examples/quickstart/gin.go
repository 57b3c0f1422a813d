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
			func(c *gin.Context) { c.Data(http.StatusOK, contentType, []byte(body)) })
	}
	return newHTTPServer(engine)
}
