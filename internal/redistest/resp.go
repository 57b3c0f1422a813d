package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// readRequest reads one command, an array of bulk strings, and returns its
// name in lower case and all its bytes.
func readRequest(r *bufio.Reader) (name string, raw []byte, err error) {
	var whole bytes.Buffer
	n, err := readHeader(r, &whole, '*')
	if err != nil {
		return "", nil, err
	}
	for i := range n {
		size, err := readHeader(r, &whole, '$')
		if err != nil {
			return "", nil, err
		}
		start := whole.Len()
		if _, err := io.CopyN(&whole, r, int64(size)+2); err != nil {
			return "", nil, err
		}
		if i == 0 {
			name = strings.ToLower(string(whole.Bytes()[start : start+size]))
		}
	}
	return name, whole.Bytes(), nil
}

func readHeader(r *bufio.Reader, whole *bytes.Buffer, kind byte) (int, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return 0, err
	}
	whole.Write(line)
	if line[0] != kind {
		return 0, fmt.Errorf("redistest: a request has %q where %q begins a line", line, kind)
	}
	return length(line)
}

// readReply reads one reply of RESP2 or RESP3 and returns its kind, the byte
// it begins with, and all its bytes.
func readReply(r *bufio.Reader) (kind byte, raw []byte, err error) {
	var whole bytes.Buffer
	kind, err = copyReply(r, &whole)
	return kind, whole.Bytes(), err
}

func copyReply(r *bufio.Reader, whole *bytes.Buffer) (kind byte, err error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return 0, err
	}
	whole.Write(line)
	kind = line[0]
	parts := 0
	switch kind {
	case '$', '!', '=': // as many bytes, and a line end
		n, err := length(line)
		if err != nil || n < 0 {
			return kind, err
		}
		_, err = io.CopyN(whole, r, int64(n)+2)
		return kind, err
	case '*', '~', '>':
		parts, err = length(line)
	case '%', '|':
		parts, err = length(line)
		parts *= 2
	}
	for range parts {
		if err == nil {
			_, err = copyReply(r, whole)
		}
	}
	if err == nil && kind == '|' { // attributes stand before the reply they are about
		return copyReply(r, whole)
	}
	return kind, err
}

func length(line []byte) (int, error) {
	return strconv.Atoi(string(bytes.TrimSpace(line[1:])))
}
