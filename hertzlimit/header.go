package hertzlimit

import (
	"bytes"
	"net/http"
	"slices"

	"github.com/cloudwego/hertz/pkg/protocol"
	"github.com/cloudwego/hertz/pkg/protocol/consts"
)

// header returns the header of a request as net/http has it: without the host and the
// framing. Hertz keeps one line of some fields. For these it returns the lines that were
// sent, unless middleware has changed the field.
func header(h *protocol.RequestHeader) http.Header {
	all := http.Header{}
	h.VisitAllCustomHeader(func(name, value []byte) { all.Add(string(name), string(value)) })
	all.Del(consts.HeaderTransferEncoding)
	if length := h.ContentLengthBytes(); len(length) > 0 {
		all.Set(consts.HeaderContentLength, string(length))
	}
	if h.ConnectionClose() {
		all.Set(consts.HeaderConnection, "close")
	}
	for name, kept := range map[string][]byte{
		consts.HeaderContentType: h.ContentType(), consts.HeaderUserAgent: h.UserAgent(),
	} {
		if len(kept) == 0 {
			continue
		}
		all.Set(name, string(kept))
		if sent := sent(h, name); len(sent) > 1 && sent[len(sent)-1] == string(kept) {
			all[name] = sent
		}
	}
	if joined := h.Peek(consts.HeaderCookie); len(joined) > 0 && len(all[consts.HeaderCookie]) == 0 {
		all.Set(consts.HeaderCookie, string(joined)) // Hertz has parsed the lines
		if sent := sent(h, consts.HeaderCookie); parsed(sent) == string(joined) {
			all[consts.HeaderCookie] = sent
		}
	}
	return all
}

// sent returns the lines of a field in the header as it arrived.
func sent(h *protocol.RequestHeader, name string) (lines []string) {
	for line := range bytes.Lines(h.RawHeaders()) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		if len(key) == len(name) && bytes.EqualFold(key, []byte(name)) {
			lines = append(lines, string(bytes.TrimSpace(value)))
		}
	}
	return slices.Clip(lines)
}

// parsed returns lines of Cookie as Hertz joins them.
func parsed(lines []string) string {
	var h protocol.RequestHeader
	for _, line := range lines {
		h.Add(consts.HeaderCookie, line)
	}
	return string(h.Peek(consts.HeaderCookie))
}
