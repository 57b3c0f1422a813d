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
	events := map[string]int{}
	for _, c := range s.chains {
		runs, bookings, err := s.ledger.counts(ctx, c.entry())
		if err != nil {
			return err
		}
		if bookings != 1 || runs < 1 || runs > c.trouble.most || c.tally.givenUp > 0 || c.tally.acknowledgements == 0 {
			faults = append(faults, fmt.Errorf("%s, %s: event %d of order %s: handled %d times (%d at most), booked %d times, acknowledged %d times",
				c.provider.name, c.trouble.name, c.delivery.event, c.delivery.order, runs, c.trouble.most, bookings, c.tally.acknowledgements))
		}
		row := rows[c.provider.name]
		if row == nil {
			row = &tally{}
			rows[c.provider.name] = row
		}
		events[c.provider.name]++
		row.deliveries += c.tally.deliveries
		row.acknowledgements += c.tally.acknowledgements
		row.givenUp += c.tally.givenUp
		row.runs += runs
		row.bookings += bookings
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "provider\tevents\tdeliveries\thandler runs\tbookings\tacknowledgements\tgiven up\t")
	sum, expected := tally{}, 0
	for _, p := range providers() {
		row := rows[p.name]
		line(table, p.name, events[p.name], *row)
		expected += events[p.name]
		sum.deliveries += row.deliveries
		sum.runs += row.runs
		sum.bookings += row.bookings
		sum.acknowledgements += row.acknowledgements
		sum.givenUp += row.givenUp
	}
	line(table, "all", expected, sum)
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

func line(table *tabwriter.Writer, name string, events int, t tally) {
	fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n",
		name, events, t.deliveries, t.runs, t.bookings, t.acknowledgements, t.givenUp)
}
