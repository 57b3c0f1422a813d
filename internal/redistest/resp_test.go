package redistest

import (
	"bufio"
	"strings"
	"testing"
)

// One reply after the other is read to its own end, whatever its shape.
func TestRepliesAreToldApart(t *testing.T) {
	t.Parallel()
	replies := []string{
		"+OK\r\n", "-ERR no\r\n", ":-7\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(123456789012345678901\r\n",
		"$-1\r\n", "$0\r\n\r\n", "$7\r\na\r\n$5\r\n\r\n", "=7\r\ntxt:abc\r\n", "!5\r\nERR x\r\n",
		"*-1\r\n", "*0\r\n", "*2\r\n*1\r\n:1\r\n$1\r\nx\r\n", "~2\r\n+a\r\n+b\r\n",
		"%2\r\n+a\r\n:1\r\n+b\r\n*2\r\n:1\r\n:2\r\n", ">2\r\n$7\r\nmessage\r\n+m\r\n",
		"|1\r\n+ttl\r\n:5\r\n*1\r\n:1\r\n",
	}
	in := bufio.NewReader(strings.NewReader(strings.Join(replies, "")))
	for _, want := range replies {
		kind, raw, err := readReply(in)
		if err != nil || string(raw) != want {
			t.Fatalf("read %q, %v; want %q", raw, err, want)
		}
		if first := want[0]; first != '|' && kind != first {
			t.Errorf("%q: got the kind %q, want %q", raw, kind, first)
		}
	}
	if rest := in.Buffered(); rest != 0 {
		t.Errorf("%d bytes are left, want 0", rest)
	}
}

func TestPushesAnswerNothing(t *testing.T) {
	t.Parallel()
	c := &proxied{}
	for _, name := range []string{"get", "subscribe", "set"} {
		c.sent(passed{name: name})
	}
	for i, want := range []struct {
		kind byte
		name string
	}{{'>', ""}, {'$', "get"}, {'>', ""}, {'+', "set"}, {'+', ""}} {
		if got := c.answered(want.kind).name; got != want.name {
			t.Errorf("reply %d answers %q, want %q", i, got, want.name)
		}
	}
}
