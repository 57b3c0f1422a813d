package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
)

//go:embed answer.lua
var answerLua string

var answer = script.New("answer.lua", answerLua)

// The rules of the campaign.
const (
	mostADay   = 100 // points
	smallPrize = 150
	largePrize = 250
	boardSize  = 100

	keepDay = 48 * time.Hour
	keepAll = 30 * 24 * time.Hour
	jitter  = time.Hour // so that a day's keys do not all expire at once
)

// Campaign counts answers. It is safe for concurrent use.
type Campaign struct {
	rdb    redis.UniversalClient
	runner *script.Runner
	name   string
}

// New makes a campaign. It asks Redis nothing.
func New(rdb redis.UniversalClient, name string) (*Campaign, error) {
	runner, err := script.NewRunner(rdb, &script.Options{Budget: time.Second})
	if err != nil {
		return nil, err
	}
	return &Campaign{rdb, runner, name}, nil
}

// Answer is what a player said. Day is that on which it was accepted, so that one
// that is sent again after midnight counts where it belongs.
type Answer struct {
	Player, Question, Day string
	Points                int64
}

// Result is what answer.lua replies.
type Result struct {
	Counted bool // false: it was before, perhaps by a call whose reply was lost
	Points  int64
	Today   int64
	Total   int64
	Prize   int
	Place   int // on the board; 0: not among the best
}

// Answer counts an answer, once however often it is sent: a lost reply is asked
// for again.
func (c *Campaign) Answer(ctx context.Context, a Answer) (r Result, err error) {
	for range 5 {
		reply, failed := c.runner.Run(ctx, answer, c.keys(a.Player, a.Day),
			a.Player, a.Question, a.Points, mostADay, smallPrize, largePrize, boardSize, ttl(keepDay), ttl(keepAll))
		switch {
		case failed == nil:
			err = answer.Decode(reply, &r)
			return r, err
		case !errors.Is(failed, script.ErrMaybeExecuted) && !errors.Is(failed, script.ErrNotExecuted):
			return r, failed
		}
		err = failed
	}
	return r, err
}

// ttl is in milliseconds.
func ttl(keep time.Duration) int64 { return (keep + rand.N(jitter)).Milliseconds() }

func (c *Campaign) prefix() string { return "quiz:{" + c.name + "}" }

// keys share the campaign's slot, since the board is that of all players.
func (c *Campaign) keys(player, day string) []string {
	tag := c.prefix() + ":"
	return []string{tag + "player:" + player, tag + "day:" + day + ":" + player, tag + "board"}
}

// Standing is a line of the board.
type Standing struct {
	Player string
	Total  int64
}

// Board is the best players, the first first.
func (c *Campaign) Board(ctx context.Context) ([]Standing, error) {
	lines, err := c.rdb.ZRevRangeWithScores(ctx, c.keys("", "")[2], 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("reading the board: %w", err)
	}
	board := make([]Standing, len(lines))
	for i, z := range lines {
		board[i] = Standing{z.Member.(string), int64(z.Score)}
	}
	return board, nil
}
