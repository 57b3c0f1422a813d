package gatetest

import (
	"testing"
)

// Run tests that the adapter behind d keeps the contract, in parallel subtests. A field of
// d that is missing, and a method of its Exchange that panics, fail each subtest that
// needs it, by name. So you have the first results before the driver is whole:
//
//	go test -run 'TestContract/(Pass|Reply)'
func Run(t *testing.T, d Driver) {
	t.Helper()
	if d.Serve == nil {
		t.Fatal("gatetest: a Driver needs Serve")
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, d.reporting(t))
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
	{"Pass/SetCookieLines", setCookies},
	{"Pass/UnknownPath", unknownPath},
	{"Reply/InsteadOfTheHandler", replyInstead},
	{"Reply/OfAGlobalGate", replyGlobal},
	{"Reply/Head", replyHead},
	{"Reply/StatusWithoutBody", replyWithoutBody},
	{"Reply/AsItIs", replyAsItIs},
	{"Reply/BodyLeftUnread", replyUnread},
	{"Leave/SeesWhatTheClientSees", leaveSees},
	{"Leave/CaptureLimit", captureLimit},
	{"Leave/CaptureLarge", captureLarge},
	{"Leave/NoBodyToSee", leaveWithoutBody},
	{"Leave/AgreesWithTheClient", leaveAgrees},
	{"Leave/Order", leaveOrder},
	{"Leave/InnerReply", leaveInnerReply},
	{"Leave/Concurrent", leaveConcurrently},
	{"Leave/Stream", leaveStream},
	{"Leave/StreamHeld", streamHeld},
	{"Leave/HandlerPanics", handlerPanics},
	{"Leave/EnterPanics", enterPanics},
	{"Leave/LeavePanics", leavePanics},
	{"Leave/HandlerErrors", handlerErrors},
	{"Leave/Hijack", hijacked},
	{"Leave/ClientGone", disconnected},
	{"Context/SetAndRestored", contexts},
	{"Context/Values", values},
	{"Context/OutlivesTheRequest", outliving},
	{"Body/ReadTwice", bodyTwice},
	{"Body/TooLarge", bodyTooLarge},
	{"Body/AsSent", bodyAsSent},
	{"Body/Broken", bodyBroken},
	{"Body/Consumed", bodyConsumed},
	{"Body/ExpectContinue", expectContinue},
	{"Request/Target", targets},
	{"Request/Rewritten", rewritten},
	{"Request/Host", hosts},
	{"Request/Header", requestHeaders},
	{"Request/DoubledFields", doubledFields},
	{"Request/LinesInOrder", linesInOrder},
	{"Request/Query", queries},
	{"Request/MethodAndPeer", methodsAndPeer},
	{"Request/PeerReplaced", peerReplaced},
	{"Request/Route", routes},
	{"Request/Escapes", escapes},
	{"Request/Params", params},
	{"Request/ParamsExclude", paramsExclude},
	{"Request/InvalidEscapes", invalidEscapes},
	{"Request/MayBeKept", keptStrings},
	{"Request/Native", native},
	{"Trailer/Unseen", trailersUnseen},
	{"Trailer/Spoof", trailersSpoof},
	{"Trailer/OuterMiddleware", trailersOuter},
	{"Trailer/Idempotent", trailersIdempotent},
	{"RateLimit/Fields", rateLimit},
	{"RateLimit/Exact", rateLimitExact},
	{"RateLimit/InContext", decisionInContext},
	{"RateLimit/LegacyFields", legacyFields},
	{"RateLimit/Refusals", refusals},
	{"RateLimit/UnknownRoute", unknownRoute},
	{"RateLimit/ClientIP", clientIPs},
	{"Count/EndedFurtherIn", countEndedFurtherIn},
	{"Count/RefusedFurtherIn", countRefusedFurtherIn},
	{"Concurrency/Full", inFlight},
	{"Concurrency/HandlerPanics", inFlightPanics},
	{"Concurrency/ClientGone", inFlightGone},
	{"Exclusive/OneAtATime", exclusiveRows},
	{"Exclusive/Handler", exclusiveHandler},
	{"Exclusive/HandlerPanics", exclusivePanics},
	{"Exclusive/ClientGone", exclusiveGone},
	{"Exclusive/Lost", exclusiveLost},
	{"Exclusive/Outer", exclusiveOuter},
	{"Idempotent/Once", idempotentOnce},
	{"Idempotent/Replay", idempotentReplay},
	{"Idempotent/Head", idempotentHead},
	{"Idempotent/Keys", idempotentKeys},
	{"Idempotent/Refusals", idempotentRefusals},
	{"Idempotent/Reused", idempotentReused},
	{"Idempotent/OwnKeys", idempotentOwnKeys},
	{"Idempotent/Context", idempotentContext},
	{"Idempotent/Lost", idempotentLost},
	{"Idempotent/ClientGone", idempotentGone},
	{"Idempotent/Reconciled", idempotentReconciled},
	{"Idempotent/Unstored", idempotentUnstored},
	{"Idempotent/HandlerErrors", idempotentErrors},
	{"Idempotent/InDoubt", idempotentInDoubt},
	{"Idempotent/Status", idempotentStatus},
	{"Idempotent/ReplayOption", idempotentReplayOption},
	{"Idempotent/Abandoned", idempotentAbandoned},
	{"Idempotent/Bodies", idempotentBodies},
	{"Idempotent/BrokenBodies", idempotentBroken},
	{"Idempotent/Consumed", idempotentConsumed},
	{"Idempotent/Inner", idempotentInner},
	{"Idempotent/RedisAway", idempotentAway},
	{"Reserve/Answers", reserveAnswers},
	{"Reserve/Exact", reserveExact},
	{"Reserve/Outcome", reserveOutcome},
	{"Reserve/ClientGone", reserveGone},
	{"Reserve/Outer", reserveOuter},
	{"Count/OnlyFailures", countFailures},
	{"Count/Unseen", countUnseen},
	{"Count/InFlight", countInFlight},
	{"Count/ClientGone", countGone},
	{"Count/HangUps", countHangUps},
	{"Outer/Counts", outerCounts},
	{"Outer/Panics", outerPanics},
	{"Mount/Endpoint", endpoints},
	{"Mount/Nil", nilGates},
}
