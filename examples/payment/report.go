package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
)

// report prints the table. Its error says what did not hold.
func (s *simulation) report(ctx context.Context) error {
	var faults []error
	rows := map[string]*tally{}
	expected := 0 // of the ledger
	for _, c := range s.chains {
		runs, bookings, err := s.ledger.counts(ctx, c.name(), c.entry())
		if err != nil {
			return err
		}
		if bookings != c.once() || runs < 1 || runs > c.trouble.most || c.tally.givenUp > 0 || c.tally.acknowledgements == 0 {
			faults = append(faults, fmt.Errorf("%s, %s: %s: handled %d times (%d at most), booked %d times and not %d, acknowledged %d times",
				c.provider.name, c.trouble.name, c.name(), runs, c.trouble.most, bookings, c.once(), c.tally.acknowledgements))
		}
		row := rows[c.provider.name]
		if row == nil {
			row = &tally{}
			rows[c.provider.name] = row
		}
		row.events++
		row.deliveries += c.tally.deliveries
		row.acknowledgements += c.tally.acknowledgements
		row.givenUp += c.tally.givenUp
		row.runs += runs
		if c.delivery.other == "" { // of those that come again it was counted
			row.bookings += bookings
			expected++
		}
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "provider\tevents\tdeliveries\thandler runs\tbookings\tacknowledgements\tgiven up\t")
	sum := tally{}
	for _, p := range providers() {
		row := rows[p.name]
		line(table, p.name, *row)
		sum.events += row.events
		sum.deliveries += row.deliveries
		sum.runs += row.runs
		sum.bookings += row.bookings
		sum.acknowledgements += row.acknowledgements
		sum.givenUp += row.givenUp
	}
	line(table, "all", sum)
	if err := table.Flush(); err != nil {
		return err
	}
	entries := 0
	if err := s.ledger.db.QueryRowContext(ctx, "SELECT count(*) FROM ledger").Scan(&entries); err != nil {
		return err
	}
	if entries != expected {
		faults = append(faults, fmt.Errorf("the ledger has %d entries, not %d", entries, expected))
	}
	return errors.Join(faults...)
}

func line(table *tabwriter.Writer, name string, t tally) {
	fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n",
		name, t.events, t.deliveries, t.runs, t.bookings, t.acknowledgements, t.givenUp)
}
