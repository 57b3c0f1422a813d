package echo5limit

import (
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatehttp"
)

// recorded runs next, renders the error that it returns, and returns what the client
// sees. It returns nil if the application left the error to middleware outside.
func recorded(c *echo.Context, capture int64, next echo.HandlerFunc) (*gate.Reply, error) {
	w := writerOf(c)
	rec := gatehttp.NewRecorder(w.outer.Header(), c.Request().Method, capture)
	w.set(rec.Wrap(w.outer))
	defer func() { w.set(w.outer) }()

	err := next(c)
	if err == nil {
		return rec.Reply(), nil
	}
	if !rec.Committed() {
		c.Echo().HTTPErrorHandler(c, err)
	}
	if !rec.Committed() {
		return nil, err
	}
	w.outer = gatehttp.Sealed{ResponseWriter: w.outer} // Echo renders the error again when it is returned
	return rec.Reply(), err
}

// writer is where a context's response is written.
type writer struct {
	outer http.ResponseWriter
	set   func(http.ResponseWriter)
}

// writerOf returns the writer inside Echo's own response. The hooks of that response then
// run before the recorder sees the header. If middleware outside has replaced the
// response, writerOf returns the middleware's.
func writerOf(c *echo.Context) writer {
	if response, is := c.Response().(*echo.Response); is {
		return writer{response.ResponseWriter, func(w http.ResponseWriter) { response.ResponseWriter = w }}
	}
	return writer{c.Response(), c.SetResponse}
}
