package kind

import (
	"fmt"
	"time"
)

// Exact is 2^53: up to it, Lua's numbers represent every integer.
const Exact = 1 << 53

// Fits reports whether the product of positive factors stays below 2^53.
func Fits(factors ...int64) bool {
	left := int64(Exact)
	for _, f := range factors {
		left /= f
		if left == 0 {
			return false
		}
	}
	return true
}

// CeilDiv returns a/b rounded up, for b > 0. Below an a of 0 it is 0.
func CeilDiv(a, b int64) int64 {
	if a <= 0 {
		return 0
	}
	return (a-1)/b + 1
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// inexact names the fields whose numbers are too large together.
func inexact(fields, remedy string) error {
	return fmt.Errorf("%s are together beyond exact arithmetic (2^53): %s", fields, remedy)
}

func checkPositive(field string, n int64) error {
	if n > 0 {
		return nil
	}
	return fmt.Errorf("%s is %d: it must be at least 1", field, n)
}

// checkLeast refuses durations below a millisecond. This catches the number 1 read from a
// file, which Go takes for a nanosecond.
func checkLeast(field string, d time.Duration) error {
	if d >= time.Millisecond {
		return nil
	}
	return fmt.Errorf("%s is %v: it must be at least a millisecond (a bare number is nanoseconds: write 1 * time.Second)", field, d)
}

func checkWhole(field string, d, unit time.Duration, units string) error {
	if err := checkLeast(field, d); err != nil {
		return err
	}
	if d%unit != 0 {
		return fmt.Errorf("%s is %v: it must be a whole number of %s", field, d, units)
	}
	return nil
}

func checkDebt(most int64) error {
	if most >= 0 {
		return nil
	}
	return fmt.Errorf("MaxDebt is %d: use a positive number, or 0 for no debt", most)
}

// owing returns the sum of a limit and the debt beyond it.
func owing(limit, debt int64) (largest int64, err error) {
	if limit > Exact || debt > Exact || !Fits(limit+debt, 2) {
		return 0, inexact("Limit and MaxDebt", "use a Limit and a MaxDebt that are below 2^52 together")
	}
	return limit + debt, nil
}
