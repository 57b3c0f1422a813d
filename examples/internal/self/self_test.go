package self_test

import (
	"io"
	"strings"
	"testing"

	"github.com/neap-go/neap/examples/internal/self"
)

func TestAProcessEndsWithItsParent(t *testing.T) {
	t.Parallel()
	in, parent := io.Pipe()
	ctx := self.WhileOpen(t.Context(), in)
	if _, err := io.Copy(parent, strings.NewReader("said")); err != nil || ctx.Err() != nil {
		t.Fatalf("while its parent lives: got %v, and the context's error %v, want none", err, ctx.Err())
	}
	parent.Close()
	<-ctx.Done()
}
