package guide

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

func TestBelowZero(t *testing.T) {
	t.Parallel()
	pitfall[int]{
		asks: "how many of twenty simultaneous buyers are sold a phone, if there are ten",
		usual: func(s scene) int {
			s.must(s.rdb.Set(s.Context(), s.key, 10, 0).Err())
			s.rdb.AddHook(&meeting{at: "get", of: 20})
			sold := s.together(20, func() (bool, error) { return SellByGet(s.Context(), s.rdb, s.key) })
			if left := s.number(s.key); left != -10 {
				s.Errorf("phones left: got %d, want -10, as the chapter says", left)
			}
			return sold
		},
		breaks: 20,
		neap: func(s scene) int {
			phones := s.phones(nil)
			var buyer atomic.Int64
			return s.together(20, func() (bool, error) {
				n := strconv.FormatInt(buyer.Add(1), 10)
				return Sell(s.Context(), phones, n, "order-"+n)
			})
		},
		holds: 10,
	}.run(t)
}

func TestSoldAgainAfterAnEviction(t *testing.T) {
	t.Parallel()
	pitfall[int]{
		asks: "how many of ten phones are sold before and after the key was evicted",
		usual: func(s scene) int {
			return s.selling(20, func(string) (bool, error) { return SellByScript(s.Context(), s.rdb, s.key, 10) })
		},
		breaks: 15,
		neap: func(s scene) int {
			phones := s.phones(nil)
			return s.selling(20, func(buyer string) (bool, error) { return Sell(s.Context(), phones, buyer, "order-"+buyer) })
		},
		holds: 5,
	}.run(t)
}

func TestABuyerTwice(t *testing.T) {
	t.Parallel()
	pitfall[int]{
		asks: "how many phones are gone after one buyer has pressed the button three times",
		usual: func(s scene) int {
			for range 3 {
				_, err := SellByScript(s.Context(), s.rdb, s.key, 10)
				s.must(err)
			}
			return 10 - s.number(s.key)
		},
		breaks: 3,
		neap: func(s scene) int {
			phones := s.phones(nil)
			for press := range 3 {
				_, err := Sell(s.Context(), phones, "alice", "order-"+strconv.Itoa(press))
				s.must(err)
			}
			level, err := phones.Left(s.Context(), "phone")
			s.must(err)
			return 10 - int(level.Left)
		},
		holds: 1,
	}.run(t)
}

func TestAProcessDiesWithAUnit(t *testing.T) {
	t.Parallel()
	pitfall[int]{
		asks: "how many of ten phones are left after a process died between taking one and the payment",
		usual: func(s scene) int {
			_, err := SellByScript(s.Context(), s.rdb, s.key, 10)
			s.must(err)
			s.pass(24 * time.Hour)
			return s.number(s.key)
		},
		breaks: 9,
		neap: func(s scene) int {
			phones := s.phones(&stock.Options{Lease: 3 * time.Second})
			_, err := phones.Reserve(s.Context(), "phone", "alice", "order-1", nil)
			s.must(err)
			left := 0
			redistest.Await(s.T, patience, "the lease to end", func() bool {
				level, err := phones.Left(s.Context(), "phone")
				left = int(level.Left)
				return err == nil && left == 10
			})
			return left
		},
		holds: 10,
	}.run(t)
}

// selling lets the buyers buy one after the other. The key is evicted after the fifth
// one.
func (s scene) selling(buyers int, sell func(buyer string) (bool, error)) (sold int) {
	for i := range buyers {
		if i == 5 {
			s.must(s.admin.Del(s.Context(), s.keys()...).Err())
		}
		ok, err := sell(strconv.Itoa(i))
		s.must(err)
		if ok {
			sold++
		}
	}
	return sold
}

// phones opens a sale of ten phones, for an hour.
func (s scene) phones(opts *stock.Options) *stock.Stock {
	s.Helper()
	if opts == nil {
		opts = &stock.Options{}
	}
	opts.Budget = patience
	phones, err := stock.New(storetest.At(s, s.rdb, s.key), "sale", opts)
	s.must(err)
	_, err = phones.Open(s.Context(), "phone", 10, time.Now().Add(time.Hour))
	s.must(err)
	return phones
}
