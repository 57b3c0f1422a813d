package main

import (
	"io"

	"github.com/labstack/echo/v4"

	"github.com/neap-go/neap/echolimit"
	"github.com/neap-go/neap/examples/internal/host"
)

func newEcho(endpoints []endpoint) host.Server {
	e := echo.New()
	for _, p := range endpoints {
		e.Match(p.methods, colons(p.path),
			func(c echo.Context) error {
				r := p.work(c.Request().Context(), asked{c.Request().URL.RawQuery, func() ([]byte, error) {
					return io.ReadAll(c.Request().Body)
				}})
				for name, value := range r.header {
					c.Response().Header().Set(name, value)
				}
				return c.Blob(r.status, r.contentType, []byte(r.text))
			},
			echolimit.Middleware(p.gate))
	}
	return host.HTTP(e)
}
