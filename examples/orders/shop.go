package main

import (
	"context"
	"database/sql"
	"errors"

	_ "modernc.org/sqlite" // in Go alone: nothing has to be installed

	"github.com/neap-go/neap/core/idempotency"
)

const schema = `CREATE TABLE IF NOT EXISTS orders (
	id              INTEGER PRIMARY KEY,
	idempotency_key TEXT    NOT NULL UNIQUE,
	fence           BIGINT  NOT NULL,
	item            TEXT    NOT NULL
)`

// shop has its orders in a database of its own.
type shop struct {
	db     *sql.DB
	booked func() // called between the COMMIT and the answer
}

func open(ctx context.Context, file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
	if err == nil {
		_, err = db.ExecContext(ctx, schema)
	}
	return db, err
}

type order struct {
	ID   int64  `json:"id"`
	Item string `json:"item"`
}

// place books an order, or finds the one that an earlier run has booked whose
// process died before it could say so.
func (s *shop) place(ctx context.Context, o order) (order, error) {
	claim, ok := idempotency.FromContext(ctx)
	if !ok {
		return o, errors.New("place is called without the gate")
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return o, err
	}
	defer func() { _ = tx.Rollback() }()
	err = tx.QueryRowContext(ctx, `INSERT INTO orders (idempotency_key, fence, item) VALUES ($1, $2, $3)
		ON CONFLICT (idempotency_key) DO NOTHING RETURNING id`, claim.Key(), claim.Fence(), o.Item).Scan(&o.ID)
	if errors.Is(err, sql.ErrNoRows) { // it was booked
		err = tx.QueryRowContext(ctx, "SELECT id, item FROM orders WHERE idempotency_key = $1",
			claim.Key()).Scan(&o.ID, &o.Item)
		return o, err
	}
	// What else belongs to an order is written here, in the same transaction.
	if err == nil {
		err = tx.Commit()
	}
	if err == nil {
		s.booked()
	}
	return o, err
}

func count(ctx context.Context, file string) (orders int, err error) {
	db, err := open(ctx, file)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM orders").Scan(&orders)
	return orders, err
}
