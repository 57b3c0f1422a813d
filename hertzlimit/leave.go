package hertzlimit

import (
	"io"
	"runtime"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/network"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
)

// atEnd returns a function that calls leave when the response has ended. As a rule that is
// immediately. But when the handlers have returned, Hertz writes the stream of a body,
// finalizes a writer of the handler's, and runs the function of Hijack.
//
// Each gate puts something of its own around what it finds, so that gates further in are
// left before it.
func atEnd(c *app.RequestContext, leave func(*gate.Reply)) func(*gate.Reply) {
	return func(reply *gate.Reply) {
		response, end := &c.Response, new(adapter.End)
		handler, w := c.GetHijackHandler(), response.GetHijackWriter()
		if reply == nil || handler == nil && w == nil && !response.IsBodyStream() {
			leave(reply)
			return
		}
		end.Leave(leave, reply)
		switch {
		case handler != nil:
			talk := adapter.Watch(&talk{handler, end}, end)
			c.SetHijackHandler(talk.run)
		case w != nil:
			response.HijackWriter(endsWriter(w, end))
		default:
			present := response.BodyStream()
			if is, limited := present.(*io.LimitedReader); limited { // Hertz would take its length
				if n := int(is.N); n >= 0 && int64(n) == is.N && response.Header.ContentLength() < 0 {
					response.Header.SetContentLength(n)
				}
			}
			response.ConstructBodyStream(response.BodyBuffer(), end.Stream(present)) // SetBodyStream would close present
		}
	}
}

// talk is a function of Hijack.
type talk struct {
	handler app.HijackHandler
	end     *adapter.End
}

func (t *talk) run(conn network.Conn) {
	defer runtime.KeepAlive(t)
	defer func() { _ = t.end.Reach(false) }()
	t.handler(conn)
}

// writer is a writer with which a handler has replaced that of Hertz. Hertz finalizes it
// when the handlers have returned.
type writer struct {
	network.ExtWriter
	end *adapter.End
}

// endsWriter returns a writer that also has SetBody if w has it, for which Hertz looks.
func endsWriter(w network.ExtWriter, end *adapter.End) network.ExtWriter {
	own := adapter.Watch(&writer{w, end}, end)
	if set, ok := w.(setter); ok {
		return struct {
			*writer
			setter
		}{own, set}
	}
	return own
}

type setter interface{ SetBody(body []byte) }

// Finalize has the gates left when all is written but the mark of the end, so that a
// client that has read the end finds nothing held.
func (w *writer) Finalize() error {
	w.settle()
	return w.ExtWriter.Finalize()
}

func (w *writer) settle() {
	if inner, ok := w.ExtWriter.(interface{ settle() }); ok {
		inner.settle()
	} else {
		_ = w.Flush()
	}
	_ = w.end.Reach(false)
}
