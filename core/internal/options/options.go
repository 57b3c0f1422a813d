// Package options checks the fields of options and fills in their defaults.
package options

import (
	"errors"
	"fmt"
	"time"
)

// Check collects the faults of one set of options, each with its field and the
// remedy. The zero value is ready to use.
type Check struct{ faults []error }

// Faultf adds a fault.
func (c *Check) Faultf(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf(format, args...))
}

// Duration replaces a zero by the default. A value out of range is a fault, and is
// replaced too.
func (c *Check) Duration(field string, d *time.Duration, least, most, standard time.Duration) {
	switch {
	case *d == 0:
		*d = standard
	case *d < least || *d > most:
		c.Faultf("%s is %v: use %v to %v, or 0 for %v", field, *d, least, most, standard)
		*d = standard
	}
}

// Milliseconds is Duration for what Redis counts in whole milliseconds. It drops a
// fraction of a millisecond.
func (c *Check) Milliseconds(field string, d *time.Duration, least, most, standard time.Duration) {
	c.Duration(field, d, least, most, standard)
	*d = d.Truncate(time.Millisecond)
}

// Positive replaces a zero by the default. A negative number is a fault, and is replaced
// too.
func (c *Check) Positive(field string, n *int, standard int) {
	if *n < 0 {
		c.Faultf("%s is %d: use a positive number, or 0 for %d", field, *n, standard)
	}
	if *n <= 0 {
		*n = standard
	}
}

// Err joins the faults. It returns nil if there are none.
func (c *Check) Err() error { return errors.Join(c.faults...) }
