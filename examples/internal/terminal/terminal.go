// Package terminal tells whether somebody watches.
package terminal

import (
	"io"
	"os"
)

// Is says whether what is written there appears on a terminal.
func Is(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
