package cells

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/internal/redistest"
)

// TestCellsKnowHowLongTheirLogsAre, whatever is taken, given back, forgotten and evicted.
func TestCellsKnowHowLongTheirLogsAre(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, err := kind.NewLog(20, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		window, err := kind.NewWindow(99, time.Second, 0)
		if err != nil {
			t.Fatal(err)
		}
		set := kind.NewSet([]*kind.Rule{kind.NewRule("log", "log", log), kind.NewRule("window", "window", window)}, false)
		b := New(keyspace.Space{}, 9, false)
		rng := redistest.Rand(t)
		type taken struct {
			kind.Request

			at int64
		}
		var all []*taken
		for i := range 2000 {
			one := &taken{Request: kind.Request{Subject: fmt.Sprint(rng.IntN(6)), Cost: rng.Int64N(20), Readings: make([]kind.Reading, 2)}}
			one.at = b.Take(set, &one.Request, 0)
			all = append(all, one)
			back := all[len(all)-1-rng.IntN(min(len(all), 3))]
			b.Refund(set, &back.Request, back.at)
			if i%50 == 0 {
				b.Reset(set, fmt.Sprint(rng.IntN(6)))
			}
			time.Sleep(time.Duration(rng.Int64N(int64(5 * time.Second))))
			kept := 0
			for _, c := range b.cells.Values() {
				kept += c.Entries()
			}
			if kept != b.entries {
				t.Fatalf("after %d decisions: got %d entries counted, want the %d that are kept", i+1, b.entries, kept)
			}
		}
	})
}
