package guide

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
)

func TestEverybodyRebuilds(t *testing.T) {
	t.Parallel()
	pitfall[int]{
		asks: "how often twenty simultaneous requests ask the source",
		usual: func(s scene) int {
			return s.twenty(func(ask source) (string, error) {
				return PriceByGet(s.Context(), s.rdb, s.key, ask)
			})
		},
		breaks: 20,
		neap:   rebuiltByOne,
		holds:  1,
	}.run(t)
}

func TestOneAfterTheOther(t *testing.T) {
	t.Parallel()
	pitfall[int]{
		asks: "how often twenty simultaneous requests ask the source, under a lock",
		usual: func(s scene) int {
			locks := s.locker(s.rdb)
			return s.twenty(func(ask source) (string, error) {
				return PriceInTurn(s.Context(), s.rdb, locks, s.key, ask)
			})
		},
		breaks: 20,
		neap:   rebuiltByOne,
		holds:  1,
	}.run(t)
}

func rebuiltByOne(s scene) int {
	locks := s.locker(s.rdb)
	return s.twenty(func(ask source) (string, error) {
		return PriceByOne(s.Context(), s.rdb, locks, s.key, ask)
	})
}

func TestTheOldPriceComesBack(t *testing.T) {
	t.Parallel()
	pitfall[string]{
		asks: "the price that a reader gets after it has changed from 17 to 18 during a rebuild",
		usual: func(s scene) string {
			price := "17"
			ask := func(context.Context) (string, error) {
				old := price
				s.must(SetPrice(s.Context(), s.rdb, s.key, func() { price = "18" }))
				return old, nil
			}
			_, err := PriceByGet(s.Context(), s.rdb, s.key, ask)
			s.must(err)
			read, err := PriceByGet(s.Context(), s.rdb, s.key, ask)
			s.must(err)
			return read
		},
		breaks: "17",
		neap: func(s scene) string {
			locks, price, changed := s.locker(s.rdb), "17", make(chan error, 1)
			_, err := PriceByOne(s.Context(), s.rdb, locks, s.key, func(context.Context) (string, error) {
				go func() {
					changed <- locks.Do(s.Context(), s.key, func(ctx context.Context) error { // waits for the rebuild
						return SetPrice(ctx, s.rdb, s.key, func() { price = "18" })
					})
				}()
				return "17", nil
			})
			s.must(err)
			s.must(<-changed)
			read, err := PriceByOne(s.Context(), s.rdb, locks, s.key, func(context.Context) (string, error) { return price, nil })
			s.must(err)
			return read
		},
		holds: "18",
	}.run(t)
}

// twenty sends twenty requests that find nothing in the cache, all of them before any
// asks the source. It returns how often the source was asked.
func (s scene) twenty(read func(source) (string, error)) (asked int) {
	s.rdb.AddHook(&meeting{at: "get", of: 20})
	var queries atomic.Int64
	got := s.together(20, func() (bool, error) {
		price, err := read(func(context.Context) (string, error) {
			return strconv.FormatInt(queries.Add(1), 10), nil
		})
		return price != "", err
	})
	if got != 20 {
		s.Errorf("requests with a price: got %d, want all twenty", got)
	}
	return int(queries.Load())
}
