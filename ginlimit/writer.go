package ginlimit

import (
	"bufio"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/gatehttp"
)

// recorded runs next and returns what the client sees. It returns nil if Gin or
// middleware outside has yet to write that.
func recorded(c *gin.Context, capture int64, next gin.HandlerFunc) *gate.Reply {
	outer, errs := c.Writer, len(c.Errors)
	w := &writer{ResponseWriter: outer, rec: gatehttp.NewRecorder(outer.Header(), c.Request.Method, capture)}
	c.Writer = w
	defer func() { c.Writer = outer }()
	next(c)
	switch {
	case outer.Written() && !w.used:
		// Engine.HandleContext gives the handlers the writer that this one wraps. It sends
		// the header even if they have written nothing.
		w.rec.Commit(outer.Status())
		if outer.Size() > 0 {
			w.rec.Flushed()
		}
	case !outer.Written() && (len(c.Errors) > errs || c.FullPath() == ""):
		return nil
	}
	w.rec.Commit(outer.Status())
	return w.rec.Reply()
}

// writer tells the recorder what passes through it.
type writer struct {
	gin.ResponseWriter
	rec  *gatehttp.Recorder
	used bool
}

// begin notes the status that goes out with the first byte. That is the last one that Gin
// was told; if Gin took an informational one for the last, it is net/http's own.
func (w *writer) begin() {
	w.used = true
	w.rec.Commit(w.Status())
	w.rec.Commit(http.StatusOK)
}

func (w *writer) WriteHeaderNow() {
	w.used = true
	w.rec.Commit(w.Status())
	w.ResponseWriter.WriteHeaderNow()
}

func (w *writer) Write(p []byte) (int, error) {
	w.begin()
	n, err := w.ResponseWriter.Write(p)
	return w.rec.Wrote(p, n, err)
}

func (w *writer) WriteString(s string) (int, error) {
	w.begin()
	n, err := w.ResponseWriter.WriteString(s)
	return w.rec.Wrote([]byte(s), n, err)
}

func (w *writer) Flush() {
	w.begin()
	w.rec.Flushed()
	w.ResponseWriter.Flush()
}

func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := w.ResponseWriter.Hijack()
	if err == nil {
		w.used = true
		w.rec.Hijacked()
	}
	return conn, rw, err
}

// Unwrap lets http.ResponseController reach the deadlines of the connection.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
