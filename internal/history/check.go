package history

import (
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// Keyed is the input of an operation on one key.
type Keyed interface{ OfKey() string }

// ByKey parts a history by the key that its operations are about.
func ByKey(history []porcupine.Operation) (parts [][]porcupine.Operation) {
	byKey := map[string]int{}
	for _, op := range history {
		key := op.Input.(Keyed).OfKey()
		i, ok := byKey[key]
		if !ok {
			i = len(parts)
			byKey[key], parts = i, append(parts, nil)
		}
		parts[i] = append(parts[i], op)
	}
	return parts
}

// Check is the checker's verdict; one that it does not reach in a minute is none.
// end makes the operation that stands behind all that was told of a key: what
// happens after it did not happen.
func Check(model porcupine.Model, history []porcupine.Operation, end func(key string) (input, output any)) porcupine.CheckResult {
	keys, last := map[string]bool{}, int64(0)
	for _, op := range history {
		keys[op.Input.(Keyed).OfKey()] = true
		if op.Return != math.MaxInt64 {
			last = max(last, op.Return)
		}
	}
	all := append([]porcupine.Operation(nil), history...)
	for key := range keys {
		input, output := end(key)
		all = append(all, porcupine.Operation{Input: input, Call: last + 1, Output: output, Return: last + 1})
	}
	return porcupine.CheckOperationsTimeout(model, all, time.Minute)
}

// draw leaves a picture of a history for -artifacts, up to where it goes wrong.
func draw(t *testing.T, model porcupine.Model, history []porcupine.Operation) {
	t.Helper()
	_, info := porcupine.CheckOperationsVerbose(model, history, time.Minute)
	path := filepath.Join(t.ArtifactDir(), "history.html")
	if err := porcupine.VisualizePath(model, info, path); err != nil {
		t.Error(err)
	}
	t.Log(path)
}
