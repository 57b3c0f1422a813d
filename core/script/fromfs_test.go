package script_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/neap-go/neap/core/script"
)

func TestFromFS(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"scripts/one.lua": {Data: []byte("return 1")}}
	got, want := script.FromFS(files, "scripts/one.lua"), script.New("one.lua", "return 1")
	if got.Name() != want.Name() || got.Source() != want.Source() || got.SHA() != want.SHA() {
		t.Errorf("got %s, %q, %s, want what New makes", got.Name(), got.Source(), got.SHA())
	}
	defer func() {
		err, _ := recover().(error)
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(fmt.Sprint(err), "two.lua") {
			t.Errorf("a file that is not there: got a panic with %v, want its name", err)
		}
	}()
	script.FromFS(files, "scripts/two.lua")
}
