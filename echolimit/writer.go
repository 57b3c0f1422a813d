package echolimit

import (
	"github.com/labstack/echo/v4"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatehttp"
)

// recorded runs next, renders the error that it returns, and returns what the client
// sees. It returns nil if the application left the error to middleware outside.
func recorded(c echo.Context, capture int64, next echo.HandlerFunc) (*gate.Reply, error) {
	response := c.Response()
	outer := response.Writer
	rec := gatehttp.NewRecorder(outer.Header(), c.Request().Method, capture)
	response.Writer = rec.Wrap(outer)
	defer func() { response.Writer = outer }()

	err := next(c)
	if err == nil {
		return rec.Reply(), nil
	}
	if !c.Response().Committed {
		c.Error(err)
	}
	if !c.Response().Committed {
		return nil, err
	}
	outer = gatehttp.Sealed{ResponseWriter: outer} // Echo renders the error again when it is returned
	return rec.Reply(), err
}
