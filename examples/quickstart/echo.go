package main

import (
	"github.com/labstack/echo/v4"

	"github.com/neap-go/neap/echolimit"
)

func newEcho(endpoints []endpoint) server {
	e := echo.New()
	for _, p := range endpoints {
		e.Match(p.methods, colons(p.path),
			func(c echo.Context) error {
				r := p.work(c.Request().Context(), c.Request().URL.RawQuery)
				return c.Blob(r.status, r.contentType, []byte(r.text))
			},
			echolimit.Middleware(p.gate))
	}
	return newHTTPServer(e)
}
