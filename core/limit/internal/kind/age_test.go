package kind_test

import (
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
)

// TestAReadingOfLongAgo tells that all is free, for each algorithm but a log: its reading does not
// say when each permit leaves.
func TestAReadingOfLongAgo(t *testing.T) {
	t.Parallel()
	made := func(by kind.Algorithm, err error) *kind.Rule {
		if err != nil {
			t.Fatal(err)
		}
		return kind.NewRule("n", "n", by)
	}
	bucket := kind.Bucket{Rate: 3, Per: time.Second}
	for _, r := range []*kind.Rule{
		made(bucket.New(false)), made(bucket.New(true)), made(kind.Bucket{Rate: 5000, Per: time.Second, Burst: 3}.New(false)),
		made(kind.NewWindow(3, time.Second, 0)), made(kind.NewSliding(3, time.Second, false)), made(kind.NewSliding(3, time.Second, true)),
		made(kind.NewCalendar(3, kind.Hour, time.UTC, 0)),
	} {
		var c kind.Cell
		r.Advance(&c, time.Now().UnixMicro())
		r.Add(&c, 3*r.Unit)
		if f := r.Figures(r.Age(r.Read(&c, 0), (24*time.Hour).Microseconds()), 0); f.Remaining != 3 || f.ResetAfter != 0 || f.NextAfter != 0 {
			t.Errorf("%s, a day later: got %+v, want all 3 left", r.Kind, f)
		}
	}
}
