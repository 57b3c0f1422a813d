package main

import (
	"context"
	"database/sql"

	_ "modernc.org/sqlite" // in Go alone: nothing has to be installed

	"github.com/neap-go/neap/core/callback"
)

// An event is booked under what the guard knows it by, and once: that is what
// holds when a process dies after the COMMIT. Amounts are in hundredths; that of
// a refund is negative.
const schema = `
CREATE TABLE IF NOT EXISTS ledger (
	event    TEXT   PRIMARY KEY,
	fence    BIGINT NOT NULL,
	shop_order TEXT NOT NULL,
	amount   BIGINT NOT NULL,
	currency TEXT   NOT NULL
);
CREATE TABLE IF NOT EXISTS runs (shop_order TEXT NOT NULL, amount BIGINT NOT NULL) -- of the handler, for the report`

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
	order    string
	amount   int64
	currency string
}

func (l ledger) ran(ctx context.Context, e entry) error {
	_, err := l.db.ExecContext(ctx, "INSERT INTO runs (shop_order, amount) VALUES ($1, $2)", e.order, e.amount)
	return err
}

// book does nothing when an earlier run has booked the event, whose process died
// before it could say so.
func (l ledger) book(ctx context.Context, e *callback.Event, b entry) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	done, err := tx.ExecContext(ctx, `INSERT INTO ledger (event, fence, shop_order, amount, currency)
		VALUES ($1, $2, $3, $4, $5) ON CONFLICT (event) DO NOTHING`, e.Key, e.Fence, b.order, b.amount, b.currency)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return err
	}
	// What else belongs to the booking is written here, in the same transaction.
	return tx.Commit()
}

// counts are how often the handler ran for an entry, and how often it was booked.
func (l ledger) counts(ctx context.Context, e entry) (runs, bookings int, err error) {
	err = l.db.QueryRowContext(ctx, `SELECT
		(SELECT count(*) FROM runs WHERE shop_order = $1 AND amount = $2),
		(SELECT count(*) FROM ledger WHERE shop_order = $1 AND amount = $2 AND currency = $3)`,
		e.order, e.amount, e.currency).Scan(&runs, &bookings)
	return runs, bookings, err
}
