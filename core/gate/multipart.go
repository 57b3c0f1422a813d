package gate

import "bytes"

// A multipart body is hashed as the pieces between its delimiters (RFC 2046 section
// 5.1.1). A delimiter is two dashes and the boundary. A piece is a whole part, header and
// content, byte by byte; the last piece has the two dashes that end the body. So two bodies
// with the same hash differ only in their boundary, and every reader finds the same parts
// in both.

var lineBreak = []byte("\r\n")

// delimits reports whether the body consists only of parts that are cleanly delimited.
// There is no preamble and no epilogue. Each delimiter is on a line of its own, and none
// is cut off. No delimiter is within a part, where one reader might see it and another
// not.
func delimits(body, delimiter []byte) bool {
	before, rest, found := bytes.Cut(body, delimiter)
	if len(before) > 0 && !bytes.Equal(before, lineBreak) { // Go's writer begins a form without parts with a line break
		return false
	}
	for found {
		var piece []byte
		piece, rest, found = bytes.Cut(rest, delimiter)
		if !found {
			return string(piece) == "--" || string(piece) == "--\r\n"
		}
		if !bytes.HasPrefix(piece, lineBreak) || !bytes.HasSuffix(piece, lineBreak) {
			return false
		}
	}
	return false
}

// pieces hashes a body that is cleanly delimited. The last piece begins as no other does,
// so the number of pieces need not be hashed.
func (p *printer) pieces(body, delimiter []byte) {
	for piece := range bytes.SplitSeq(body, delimiter) {
		p.bytes(piece)
	}
}
