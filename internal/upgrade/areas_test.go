//go:build neap_upgrade

package upgrade

import (
	"errors"
	"fmt"
	"sync"

	"github.com/neap-go/neap/internal/upgrade/wire"
)

// unique names what calls get.
var unique = func() func() string {
	var mu sync.Mutex
	n := 0
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprint("h", n)
	}
}()

// do sends a call of a session. answered is false if the process was killed meanwhile: then
// Redis has executed the call or not.
func (f *faults) do(p *process, op string, c wire.Call) (a wire.Answer, answered bool) {
	c.Op = op
	a, err := p.call(c)
	if err != nil {
		if !errors.Is(err, errGone) {
			f.addf("%v", err)
		}
		return a, false
	}
	if a.Word == "error" {
		f.addf("%s of %q by the %s: got the error %q, want none", op, c.Key, p.version, a.Text)
	}
	return a, true
}

// both are a process of each version, for a verdict.
func both(f *fleet) []*process { return f.live[:2] }
