package main

import (
	"context"
	"database/sql"

	_ "modernc.org/sqlite" // in Go alone: nothing has to be installed

	"github.com/neap-go/neap/core/callback"
)

// An event is booked under what the guard knows it by, and once: that is what
// holds when a process dies after the COMMIT. A payment or a refund is booked once
// too, of which providers may tell by several events. Amounts are in hundredths;
// that of a refund is negative.
const schema = `
CREATE TABLE IF NOT EXISTS ledger (
	event      TEXT   PRIMARY KEY,
	thing      TEXT   NOT NULL UNIQUE,
	fence      BIGINT NOT NULL,
	shop_order TEXT   NOT NULL,
	amount     BIGINT NOT NULL,
	currency   TEXT   NOT NULL
);
CREATE TABLE IF NOT EXISTS runs (chain TEXT NOT NULL) -- of the handler, for the report`

type ledger struct{ db *sql.DB }

func open(ctx context.Context, file string) (ledger, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)")
	if err == nil {
		_, err = db.ExecContext(ctx, schema)
	}
	return ledger{db}, err
}

// entry is what an event has the shop book.
type entry struct {
	thing    string // the payment or the refund, as its provider calls it
	order    string
	amount   int64
	currency string
}

func (l ledger) ran(ctx context.Context, chain string) error {
	_, err := l.db.ExecContext(ctx, "INSERT INTO runs (chain) VALUES ($1)", chain)
	return err
}

// book does nothing when an earlier run has booked the event, whose process died
// before it could say so, or another event of the same thing was booked.
func (l ledger) book(ctx context.Context, e *callback.Event, b entry) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	done, err := tx.ExecContext(ctx, `INSERT INTO ledger (event, thing, fence, shop_order, amount, currency)
		VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`, e.Key, b.thing, e.Fence, b.order, b.amount, b.currency)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return err
	}
	// What else belongs to the booking is written here, in the same transaction.
	return tx.Commit()
}

// counts are how often the handler ran for a chain, and how often what it is to
// book was booked; without an amount, whatever was booked of the order.
func (l ledger) counts(ctx context.Context, chain string, e entry) (runs, bookings int, err error) {
	err = l.db.QueryRowContext(ctx, `SELECT
		(SELECT count(*) FROM runs WHERE chain = $1),
		(SELECT count(*) FROM ledger WHERE shop_order = $2 AND ($3 = 0 OR amount = $3 AND currency = $4))`,
		chain, e.order, e.amount, e.currency).Scan(&runs, &bookings)
	return runs, bookings, err
}
