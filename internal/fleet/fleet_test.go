package fleet

import "testing"

func TestMain(m *testing.M) { Four.Main(m) }

func TestFleet(t *testing.T) {
	t.Parallel()
	Four.Test(t)
}
