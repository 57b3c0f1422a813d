package gate

import "bytes"

// A multipart body is hashed as the pieces between its delimiters (RFC 2046
// section 5.1.1), which are two dashes and the boundary. A piece is a part
// byte by byte, header and content; the last one has the two dashes that end
// the body. So two bodies that hash alike are the same but for their boundary, and
// no reader finds other parts in the one than in the other.

var lineBreak = []byte("\r\n")

// delimits says whether the body is nothing but parts, cleanly delimited: no
// preamble, no epilogue, each delimiter on a line of its own, none of them cut
// off, and none within a part, where one reader might see it and another not.
func delimits(body, delimiter []byte) bool {
	before, rest, found := bytes.Cut(body, delimiter)
	if len(before) > 0 && !bytes.Equal(before, lineBreak) { // Go's writer begins a form of no parts with one
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

// pieces hashes a body that the delimiter delimits. The one that ends it begins
// as no other does, so their number need not be told.
func (p *printer) pieces(body, delimiter []byte) {
	for piece := range bytes.SplitSeq(body, delimiter) {
		p.bytes(piece)
	}
}
