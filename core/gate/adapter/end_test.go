package adapter_test

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
)

// waiting returns an end for which one gate waits, and what its Leave is called with.
func waiting() (end *adapter.End, left chan *gate.Reply) {
	end, left = new(adapter.End), make(chan *gate.Reply, 2)
	end.Leave(func(r *gate.Reply) { left <- r }, &gate.Reply{Status: 200})
	return end, left
}

func TestEndIsReachedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stream io.Reader
		end    func(s io.Reader)
		broken bool
	}{
		"Read":   {strings.NewReader("body"), func(s io.Reader) { _, _ = io.Copy(io.Discard, struct{ io.Reader }{s}) }, false},
		"Closed": {strings.NewReader("body"), func(s io.Reader) { _ = s.(io.Closer).Close() }, false},
		"Fails":  {iotest.ErrReader(errors.New("failed")), func(s io.Reader) { _, _ = io.ReadAll(s) }, true},
		"Panics": {panics{}, func(s io.Reader) {
			defer func() { _ = s.(io.Closer).Close() }()
			defer func() { _ = recover() }()
			_, _ = io.ReadAll(s)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end, left := waiting()
			stream := end.Stream(c.stream)
			if end.Reached() || len(left) > 0 {
				t.Error("the end is reached before the stream, want it after")
			}
			c.end(stream)
			_ = end.Reach(false)
			if !end.Reached() || len(left) != 1 {
				t.Fatalf("the gate was left %d times, want once", len(left))
			}
			if reply := <-left; (reply == nil) != c.broken {
				t.Errorf("the gate got %+v, want nothing: %t", reply, c.broken)
			}
			if end.Leave(func(*gate.Reply) {}, nil) {
				t.Error("another gate waits for the end, want it not to")
			}
		})
	}
}

type panics struct{}

func (panics) Read([]byte) (int, error) { panic("a stream panics") }

// Adapters may put a stream around a stream, one for each gate.
func TestAGatePanicsAtTheEndOfAnInnerStream(t *testing.T) {
	t.Parallel()
	inner := new(adapter.End)
	inner.Leave(func(*gate.Reply) { panic("Leave panics") }, nil)
	outer, left := waiting()
	if _, err := io.ReadAll(outer.Stream(inner.Stream(strings.NewReader("body")))); err == nil {
		t.Error("the response ends well, want an error")
	}
	if len(left) != 1 || <-left == nil {
		t.Error("the gate outside did not get its reply, want it to")
	}
}

// A server may drop a stream, and neither read nor close it.
func TestStreamThatIsDropped(t *testing.T) {
	t.Parallel()
	end, left := waiting()
	end.Stream(strings.NewReader("body"))
	for deadline := time.Now().Add(time.Minute); len(left) == 0; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal("waited for Leave")
		}
	}
	if reply := <-left; reply != nil {
		t.Errorf("the gate got %+v, want nothing", *reply)
	}
}
