package gatetest

import (
	"testing"
)

// Run holds the adapter behind d to the contract, in parallel subtests.
func Run(t *testing.T, d Driver) {
	t.Helper()
	if d.Serve == nil || d.Key == nil || d.Native == nil {
		t.Fatal("gatetest: a Driver needs Serve, Key and Native")
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, d)
		})
	}
}

type contract struct {
	name string
	run  func(t *testing.T, d Driver)
}

var cases = []contract{
	{"Pass/ZeroRunsTheHandler", zeroPass},
	{"Pass/FieldsAddOrReplace", fieldsAddOrReplace},
	{"Pass/SetCookieFromGateAndHandler", setCookies},
	{"Reply/InsteadOfTheHandler", replyInstead},
	{"Leave/SeesWhatTheClientSees", leaveSees},
}
