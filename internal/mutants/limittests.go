package main

import "github.com/neap-go/neap/lua"

// limitTests are the tests that must catch a bug, in place of TestTable as a whole. The key is the
// bug's why, or its file. They are few, so that a bug costs seconds.
var limitTests = withRows(map[string]string{
	"lua/limits/shared.lua":    "TestMerged|TestABroken",
	"lua/limits/ban.lua":       features("ban|all"),
	"lua/limits/estimates.lua": features("lease") + "|Estimate",
	"lua/limits/take.lua":      features("together|plain|hold|overridden|shadow|all|lease|changed"),
	"lua/limits/settled.lua":   features("refund|settle|instances|kept|lease|changed|all"),
	"lua/limits/settle.lua":    features("refund|settle|instances|kept|lease|changed|all"),
	"lua/limit_ban.lua":        features("ban|hold|all"),
	"lua/limit_renew.lua":      features("lease"),
	"lua/limit_override.lua":   features("overridden") + "|Override",

	"core/limit/internal/kind/bucket.go":      rows("fast") + "|", // and those that withRows adds
	"core/limit/internal/kind/window.go":      "TestARefundAfterAReset|",
	"core/limit/internal/kind/kept.go":        "TestAProcessGivesNothingBack|",
	"core/limit/internal/kind/ban.go":         features("ban|hold|outages|all"),
	"core/limit/internal/cells/banrecords.go": features("outages") + "|TestAnOutageLiftsNoBan|TestABanEndsInAnOutage|TestRedisDecidesAloneAgain|TestReadingsThatCrossAChange",
	"core/limit/hold.go":                      features("hold"),
	"core/limit/override.go":                  features("overridden") + "|Override",
	"core/limit/overrides.go":                 features("overridden") + "|Override",
	"core/limit/internal/cells/bansbyend.go":  "Ban|Flood",
	"core/limit/internal/wire/read.go":        features("together|kept|ban|hold"),
	"core/limit/internal/cache/cache.go":      "Bounded",
	"core/limit/internal/cells/seed.go":       features("outages") + "|Seed|TestRedisGoesOnByItself",
	"core/limit/internal/kind/share.go":       features("instances|outages"),
	"core/limit/internal/kind/set.go":         features("ban|outages|all") + "|Binds|Shadow|With",
	"core/limit/internal/kind/settle.go":      features("settle|instances|all"),
	"core/limit/internal/kind/rule.go":        features("together|kept|all") + "|Settle|PerRequest",
	"core/limit/internal/kind/moment.go":      "Refund",
	"core/limit/internal/prepaid/accounts.go": "Prepaid|Permit|Account|Impatient|Reset|Denial",
	"core/limit/internal/prepaid/permits.go":  "Prepaid|Permit",
	"core/limit/bucket.go":                    "Prepaid|Kept",
	"core/limit/internal/line/queue.go":       "Wait|Queue|Denial|Leaves",
	"core/limit/internal/line/foresee.go":     "Wait",
	"core/limit/internal/wire/acts.go":        "Reset",
	"core/limit/internal/line/forecast.go":    "Wait",
	"core/limit/all.go":                       "TestAll",
	"core/limit/internal/wire/clock.go":       "Refund|Between|Conclusions",
	"core/limit/conclude.go":                  "Conclud|Settle|Refund|Used|Room|Once",
	"core/limit/internal/wire/estimates.go":   "Estimate|Lease|Renew",

	"a question of several callers is answered as takes":     "TestMergedQuestions",
	"what was not stored is charged":                         "TestEachCommandMadeToFail|TestNoEstimateIsKept",
	"a log is charged although it has no time to live":       "TestEachCommandMadeToFail",
	"entries to come stay in a log":                          "TestALogAhead",
	"a denied log does not heal":                             "TestStateHeals",
	"a denied fast bucket does not heal":                     "TestADebtThatIsTooLargeIsHealed",
	"a denied kept bucket does not heal":                     "TestKeptBucketHeals",
	"denials count behind the one that bans":                 "TestMergedDenialsBan",
	"a run bans by too few denials":                          "TestMergedDenialsBan",
	"a broken record of a ban is not healed":                 "TestBanHeals",
	"a fast bucket does not heal a time to live":             "TestStateHeals",
	"a kept bucket keeps more debt than anyone allows":       "TestKeptBucketHeals|TestTable/server/clock_set_back/kept",
	"a log keeps a permit that was not granted":              "TestEachCommandMadeToFail",
	"a log's denial does not heal its time to live":          "TestStateHeals",
	"more is taken back than is used":                        "TestNoMoreComesBackThanIsUsed",
	"estimates are taken back and left":                      "TestWhoTakesNoEstimatesBack",
	"a question takes estimates back":                        "TestWhoTakesNoEstimatesBack",
	"a log keeps what has left":                              "TestALogIsSmall",
	"a kept bucket trusts a time to come":                    features("clock_set_back"),
	"a count of denials waits for a clock that was set back": features("clock_set_back") + "|TestDenialsBeforeTheClockWasSetBack",
	"an estimate that cannot expire is kept":                 "TestEachCommandMadeToFail|TestNoEstimateIsKept",
	"an estimate is left that was not charged":               "TestNoEstimateIsKept",
	"a ban is told that was not stored":                      "TestDenialStandsUncounted",
	"a conclusion runs twice":                                "TestLostRefundRunsOnce|TestSettlesAreExactWithLostReplies",
	"a conclusion leaves no marker":                          "TestLostRefundRunsOnce|TestSettlesAreExactWithLostReplies",
	"a repeated settlement forgives nothing":                 "TestARepeatedSettlementTellsWhatWasForgiven",
	"the clock of another server goes unnoticed":             "TestConclusions",
	"a bucket gives back what has drained":                   "Refund",
	"a window gives back more than is used":                  "TestNoMoreIsGivenBackThanIsThere",
	"a conclusion that changed nothing leaves its marker":    "Refund|Conclusions|Settle|Permission",
	"a renewal tells that all are there":                     "TestNothingRenewsWhatWasTakenBack",
	"what is no whole number counts":                         "TestANumberThatNeapNeverWrites",
	"a number that is not exact counts":                      "TestANumberThatNeapNeverWrites",
	"a fast bucket does not heal a debt that is too large":   "TestADebtThatIsTooLargeIsHealed",
	"a moment may lie in two windows":                        "Refund|Conclusions",
	"a peek counts as a decision":                            "TestTheObserver",
	"an empty subject is one":                                "TestSubjectAndCostAreChecked",
	"a ban does not hold with FailOpen":                      "TestABanEndsInAnOutage",
	"a shadow's ban is told as a ban":                        "TestABanInShadow|TestEventsTellOfBans",
	"a refund of long ago is sent":                           "TestALateRefundSendsNothing",
	"a denial is given back":                                 "TestRefund",
	"what is given back wakes no waiter":                     "TestWaitHearsOfWhatIsGivenBack|TestWhatIsGivenBackWakesWaitersOfWith",
	"a settlement becomes a refund":                          "TestASecondCallWhileTheFirstIsRepeated",
	"a dropped conclusion tells nobody":                      "TestADroppedConclusionIsTold",
	"entries of logs have no bound":                          "TestTheFallbackCannotBeFlooded",
	"a wait learns of three overrides in all":                "TestAWaitOutlivesManyOverrides",
	"a remembered log tells of a larger cost":                "Remember",
	"the estimate of a denied request is renewed":            "Estimate",
	"a reset leaves the seed":                                features("outages") + "|Seed|Reset",
	"a fast bucket ignores its tick":                         "TestABucketOnACoarserTick",
	"a ban reaches further than it is long":                  "TestABanDoesNotReachFurtherThanItIsLong",
	"a log of entries to come tells more than a window":      "TestALogAhead",
	"a kept bucket counts beyond what is exact":              "TestKeptBucketNeverDrifts",
	"a waiter that leaves wakes nobody":                      "TestWhenTheFirstLeavesTheNextIsAdmitted",
	"a denial is kept in memory":                             "TestADenialTakesNoRoom",
	"a shadow denies the callers of a run":                   "TestAShadowDeniesNobodyOfARun",
})

// withRows adds the tests of each kind of policies.
func withRows(tests map[string]string) map[string]string {
	for _, kind := range lua.Kinds {
		tests["lua/limits/"+kind+".lua"] = rows(kind)
		tests["core/limit/internal/kind/"+kind+".go"] += rows(kind)
	}
	delete(tests, "core/limit/internal/kind/fast.go") // bucket.go has both
	return tests
}

// rows are the tests of some kinds of policies.
func rows(kinds string) string { return "^TestTable$/././^(" + kinds + ")$" }

// features are the tests of some features, of all kinds.
func features(some string) string { return "^TestTable$/./^(" + some + ")$" }
