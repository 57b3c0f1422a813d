package main

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
)

func TestABlockEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		held  time.Duration
		now   string
		over  bool
		lease time.Duration
	}{
		"in time":        {time.Second, "2030-01-01T23:00:00Z", false, time.Minute},
		"lease over":     {time.Minute, "2030-01-01T23:00:00Z", true, time.Minute},
		"day over":       {2 * time.Second, "2030-01-01T23:59:58.5Z", true, time.Minute},
		"day about over": {0, "2030-01-01T23:59:59.999Z", true, time.Minute},
	} {
		now, _ := time.Parse(time.RFC3339, c.now)
		b := &Blocks{Sequence: &Sequence{zone: time.UTC}, Size: 3, Lease: c.lease}
		b.block, b.asked = taken{20300101, 1, now.UnixMilli()}, time.Now().Add(-c.held)
		if b.over() != c.over {
			t.Errorf("%s: got over %t, want %t", name, b.over(), c.over)
		}
	}
}

// TestABlockIsLeftWhenItEnds takes one number of a block, and has its lease or its
// day end.
func TestABlockIsLeftWhenItEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, till string
		held       time.Duration
		want       string
	}{
		"in time":    {"2030-01-01T12:00:00Z", "2030-01-01T12:00:00Z", 0, "20300101-000002"},
		"lease over": {"2030-01-01T12:00:00Z", "2030-01-01T12:00:00Z", time.Hour, "20300101-000004"},
		"day over":   {"2030-01-01T23:59:59Z", "2030-01-02T00:00:01Z", 2 * time.Second, "20300102-000001"},
	} {
		m, s := shop(t, "UTC")
		at := func(text string) {
			now, _ := time.Parse(time.RFC3339, text)
			m.SetTime(now)
		}
		b := &Blocks{Sequence: s, Size: 3, Lease: time.Hour}
		at(c.from)
		if got := numbers(t, b.Next, 1); got != "20300101-000001" {
			t.Errorf("%s: the first number is %s, want 20300101-000001", name, got)
		}
		at(c.till)
		b.asked = b.asked.Add(-c.held)
		if got := numbers(t, b.Next, 1); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestABlockWithoutASizeIsOfOne shares no number with what others take meanwhile.
func TestABlockWithoutASizeIsOfOne(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, -1, -20} {
		m, s := shop(t, "UTC")
		m.SetTime(time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC))
		b := &Blocks{Sequence: s, Size: size, Lease: time.Hour}
		got := numbers(t, b.Next, 1) + " " + numbers(t, s.Next, 1) + " " + numbers(t, b.Next, 1)
		if got != "20300101-000001 20300101-000002 20300101-000003" {
			t.Errorf("blocks of %d: got %s, want the numbers 1, 2 and 3 of the day", size, got)
		}
	}
}

// clocked knows when a client was asked.
type clocked struct {
	script.Client
	began chan time.Time
}

func (c clocked) Process(ctx context.Context, cmd redis.Cmder) error {
	c.began <- time.Now()
	return c.Client.Process(ctx, cmd)
}

// TestALeaseCountsFromBeforeTheQuestion: however late the reply, the block is not
// held for longer than its lease.
func TestALeaseCountsFromBeforeTheQuestion(t *testing.T) {
	t.Parallel()
	m, _ := shop(t, "UTC")
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer rdb.Close()
	began := make(chan time.Time, 8)
	s, err := New(clocked{rdb, began}, "orders", time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	b := &Blocks{Sequence: s, Size: 3, Lease: time.Hour}
	numbers(t, b.Next, 1)
	if asked := <-began; b.asked.After(asked) {
		t.Errorf("the lease counts from %v after the question, want no later than it", b.asked.Sub(asked))
	}
}
