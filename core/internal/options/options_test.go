package options

import (
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	t.Parallel()
	const least, most, standard = time.Second, time.Minute, 30 * time.Second
	for given, c := range map[time.Duration]struct {
		want, whole time.Duration
		fault       string
	}{
		0:                 {standard, standard, ""},
		least:             {least, least, ""},
		most:              {most, most, ""},
		least + 1500*1000: {least + 1500*1000, least + time.Millisecond, ""},
		least - 1:         {standard, standard, "Lease is 999.999999ms: use 1s to 1m0s, or 0 for 30s"},
		most + 1:          {standard, standard, "Lease is 1m0.000000001s: use 1s to 1m0s, or 0 for 30s"},
		-time.Nanosecond:  {standard, standard, "Lease is -1ns: use 1s to 1m0s, or 0 for 30s"},
	} {
		var check Check
		got, whole := given, given
		check.Duration("Lease", &got, least, most, standard)
		said := ""
		if err := check.Err(); err != nil {
			said = err.Error()
		}
		check.Milliseconds("Lease", &whole, least, most, standard)
		if got != c.want || whole != c.whole || said != c.fault {
			t.Errorf("%v: got %v, %v in whole milliseconds, %q; want %v, %v, %q", given, got, whole, said, c.want, c.whole, c.fault)
		}
	}
}

func TestPositive(t *testing.T) {
	t.Parallel()
	for given, c := range map[int]struct {
		want  int
		fault string
	}{
		0: {1000, ""}, 1: {1, ""}, 5000: {5000, ""},
		-1: {1000, "MaxWaiting is -1: use a positive number, or 0 for 1000"},
	} {
		var check Check
		got, said := given, ""
		check.Positive("MaxWaiting", &got, 1000)
		if err := check.Err(); err != nil {
			said = err.Error()
		}
		if got != c.want || said != c.fault {
			t.Errorf("%d: got %d, %q; want %d, %q", given, got, said, c.want, c.fault)
		}
	}
}

// Every fault is reported. If there is none, the error is nil.
func TestErr(t *testing.T) {
	t.Parallel()
	var c Check
	if err := c.Err(); err != nil {
		t.Errorf("without a fault: got %v, want nil", err)
	}
	c.Faultf("A is %d: use 1", 2)
	c.Faultf("B is missing: set it")
	if err := c.Err(); err == nil || err.Error() != "A is 2: use 1\nB is missing: set it" {
		t.Errorf("with two faults: got %v, want both", err)
	}
}
