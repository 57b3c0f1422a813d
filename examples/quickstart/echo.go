package main

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/neap-go/neap/echolimit"
)

func newEcho(endpoints []endpoint) server {
	e := echo.New()
	for _, p := range endpoints {
		e.Match([]string{http.MethodGet, http.MethodHead}, colons(p.path),
			func(c echo.Context) error {
				status, text := p.work(c.Request().Context(), c.Request().URL.RawQuery)
				return c.Blob(status, contentType, []byte(text))
			},
			echolimit.Middleware(p.gate))
	}
	return newHTTPServer(e)
}
