package main

import (
	"errors"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/stock"
)

// words tell errors apart across versions, whose texts may differ. The first that
// matches counts, so one that wraps another stands before it.
var words = []struct {
	err  error
	word string
}{
	{limit.ErrRefund, "refund"},
	{limit.ErrSettle, "settle"},

	{lock.ErrHeld, "held"},
	{lock.ErrTakenByOther, "taken"},
	{lock.ErrLost, "lost"},
	{lock.ErrExpired, "expired"},
	{lock.ErrReleased, "released"},

	{idempotency.ErrInFlight, "in flight"},
	{idempotency.ErrMismatch, "mismatch"},
	{idempotency.ErrInDoubt, "in doubt"},
	{idempotency.ErrNoResult, "no result"},
	{idempotency.ErrUnreadable, "unreadable"},
	{idempotency.ErrExpired, "expired"},
	{idempotency.ErrLost, "lost"},
	{idempotency.ErrConcluded, "concluded"},
	{idempotency.ErrNotInDoubt, "not in doubt"},

	{stock.ErrSoldOut, "sold out"},
	{stock.ErrYours, "yours"},
	{stock.ErrUnknown, "unknown item"},
	{stock.ErrDisagrees, "disagrees"},
	{stock.ErrQuantity, "quantity"},
	{stock.ErrLapsed, "lapsed"},
	{stock.ErrCancelled, "cancelled"},
}

func wordOf(err error) string {
	for _, w := range words {
		if errors.Is(err, w.err) {
			return w.word
		}
	}
	return "error"
}
