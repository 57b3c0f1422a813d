package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/examples/internal/backend"
)

// tally is the campaign as plain Go counts it: each question once, in any order.
type tally struct {
	days   map[string]map[string]int64 // player, day: score
	totals map[string]int64
	board  []Standing
}

func recount(all []Answer) tally {
	t := tally{days: map[string]map[string]int64{}, totals: map[string]int64{}}
	seen := map[[2]string]bool{}
	for _, a := range all {
		once := [2]string{a.Player, a.Question}
		if seen[once] {
			continue
		}
		seen[once] = true
		if t.days[a.Player] == nil {
			t.days[a.Player] = map[string]int64{}
		}
		t.days[a.Player][a.Day] += a.Points
	}
	for player, days := range t.days {
		for day, points := range days {
			days[day] = min(points, mostADay)
			t.totals[player] += days[day]
		}
		if t.totals[player] > 0 {
			t.board = append(t.board, Standing{player, t.totals[player]})
		}
	}
	slices.SortFunc(t.board, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), strings.Compare(b.Player, a.Player))
	})
	t.board = t.board[:min(len(t.board), boardSize)]
	return t
}

func prizeOf(total int64) int64 {
	switch {
	case total >= largePrize:
		return 2
	case total >= smallPrize:
		return 1
	}
	return 0
}

// compare says where Redis has other figures than the recount, a key that never
// expires, or keys that expire all at once.
func (c *Campaign) compare(ctx context.Context, t tally) error {
	board, err := c.Board(ctx)
	if err != nil {
		return err
	}
	if !slices.Equal(board, t.board) {
		return fmt.Errorf("the board is\n%v, recounted\n%v", board, t.board)
	}
	for player, days := range t.days {
		total := t.totals[player]
		want := []any{strconv.FormatInt(total, 10), strconv.FormatInt(prizeOf(total), 10)}
		if got, err := c.rdb.HMGet(ctx, c.keys(player, "")[0], "total", "prize").Result(); err != nil {
			return err
		} else if !slices.Equal(got, want) {
			return fmt.Errorf("total and prize of %s are %v, recounted %v", player, got, want)
		}
		for day, want := range days {
			if got, err := c.rdb.Get(ctx, c.keys(player, day)[1]).Int64(); err != nil && !errors.Is(err, redis.Nil) {
				return err
			} else if got != want {
				return fmt.Errorf("%s has %d points on %s, recounted %d", player, got, day, want)
			}
		}
	}
	return c.mortal(ctx)
}

// mortal says which key never expires, whether the days' expire at once, and
// whether a player's may go before those of the days: it knows what was counted already.
func (c *Campaign) mortal(ctx context.Context) error {
	keys, err := c.all(ctx)
	if err != nil {
		return err
	}
	first, last, days := keepDay+jitter, time.Duration(0), 0
	for _, key := range keys {
		left, err := c.rdb.PTTL(ctx, key).Result()
		if err != nil {
			return err
		}
		if left <= 0 {
			return fmt.Errorf("%s never expires", key)
		}
		if strings.Contains(key, "}:day:") {
			first, last, days = min(first, left), max(last, left), days+1
		} else if left < keepDay+jitter {
			return fmt.Errorf("%s expires before the scores of its days", key)
		}
	}
	if days > 100 && last-first < jitter/2 {
		return fmt.Errorf("%d scores of days expire within %v", days, last-first)
	}
	return nil
}

// all are the campaign's keys, on each node of a cluster.
func (c *Campaign) all(ctx context.Context) ([]string, error) {
	return backend.Keys(ctx, c.rdb, c.prefix()+":*")
}
