package main

// limitTests are the tests that must catch a bug, in place of TestTable as a whole. The key is the
// bug's why, or its file. They are few, so that a bug costs seconds.
var limitTests = map[string]string{
	"lua/limits/shared.lua":    "TestMerged|TestABroken",
	"lua/limits/bucket.lua":    rows("bucket"),
	"lua/limits/fast.lua":      rows("fast_bucket"),
	"lua/limits/kept.lua":      rows("kept_bucket"),
	"lua/limits/window.lua":    rows("fixed_window"),
	"lua/limits/sliding.lua":   rows("sliding_window"),
	"lua/limits/calendar.lua":  rows("calendar_window"),
	"lua/limits/log.lua":       rows("sliding_log"),
	"lua/limits/ban.lua":       features("ban|all"),
	"lua/limits/estimates.lua": features("lease") + "|Estimate",
	"lua/limits/take.lua":      features("together|plain|broken|ban|shadow|all|lease|kept"),
	"lua/limits/settled.lua":   features("refund|settle|instances|kept|lease|changed|all"),
	"lua/limits/settle.lua":    features("refund|settle|instances|kept|lease|changed|all"),
	"lua/limit_ban.lua":        features("ban|all"),
	"lua/limit_renew.lua":      features("lease"),

	"core/limit/bucket.go":     rows("bucket|fast_bucket"),
	"core/limit/window.go":     rows("fixed_window") + "|TestARefundAfterAReset",
	"core/limit/sliding.go":    rows("sliding_window") + "|TestAReadingOfLongAgo",
	"core/limit/log.go":        rows("sliding_log") + "|TestALogReleasesItsMemory",
	"core/limit/keptbucket.go": rows("kept_bucket"),
	"core/limit/calendar.go":   rows("calendar_window"),
	"core/limit/civil.go":      rows("calendar_window") + "|TestPeriods",
	"core/limit/ban.go":        features("ban|outages|all"),
	"core/limit/banrecords.go": features("outages") + "|TestAnOutageLiftsNoBan|TestABanEndsInAnOutage|TestRedisDecidesAloneAgain|TestReadingsThatCrossAChange",
	"core/limit/bansbyend.go":  "Ban|Flood",
	"core/limit/remote.go":     features("together|kept|ban"),
	"core/limit/seed.go":       features("outages") + "|Seed",
	"core/limit/instances.go":  features("instances|outages"),
	"core/limit/accounts.go":   "Prepaid|Permit|Account|Impatient|Reset|Denial",
	"core/limit/permits.go":    "Prepaid|Permit",
	"core/limit/prepaid.go":    "Prepaid|Kept",
	"core/limit/queue.go":      "Wait|Queue|Denial",
	"core/limit/forecast.go":   "Wait",
	"core/limit/order.go":      "Wait|Order",
	"core/limit/all.go":        "TestAll",
	"core/limit/clock.go":      "Refund|Between|Conclusions",
	"core/limit/conclude.go":   "Conclud|Settle|Refund|Used|Room|Once",
	"core/limit/estimate.go":   "Estimate|Lease|Renew",

	"a fast bucket does not heal a time to live":             "TestStateHeals",
	"a kept bucket keeps more debt than anyone allows":       "TestKeptBucketHeals|TestTable/server/clock_set_back/kept_bucket",
	"a log keeps a permit that was not granted":              "TestEachCommandMadeToFail",
	"a log's denial does not heal its time to live":          "TestStateHeals",
	"more is taken back than is used":                        "TestNoMoreComesBackThanIsUsed",
	"estimates are taken back and left":                      "TestWhoTakesNoEstimatesBack",
	"a question takes estimates back":                        "TestWhoTakesNoEstimatesBack",
	"a log keeps what has left":                              "TestALogIsSmall",
	"a kept bucket trusts a time to come":                    features("clock_set_back"),
	"a count of denials waits for a clock that was set back": features("clock_set_back") + "|TestDenialsBeforeTheClockWasSetBack",
	"an estimate is left that was not charged":               "TestEachCommandMadeToFail",
	"a ban is told that was not stored":                      "TestDenialStandsUncounted",
	"a conclusion runs twice":                                "TestLostRefundRunsOnce|TestSettlesAreExactWithLostReplies",
	"a conclusion leaves no marker":                          "TestLostRefundRunsOnce|TestSettlesAreExactWithLostReplies",
	"a repeated settlement forgives nothing":                 "TestARepeatedSettlementTellsWhatWasForgiven",
	"the clock of another server goes unnoticed":             "TestConclusions",
	"a bucket gives back what has drained":                   "Refund",
	"a window gives back more than is used":                  "TestNoMoreIsGivenBackThanIsThere",
	"a conclusion that changed nothing leaves its marker":    "Refund|Conclusions|Settle|Permission",
	"a renewal tells that all are there":                     "TestNothingRenewsWhatWasTakenBack",
	"what is no whole number counts":                         "TestMerged",
	"a kept bucket counts beyond what is exact":              "TestKeptBucketNeverDrifts",
}

// rows are the tests of some kinds of policies.
func rows(kinds string) string { return "^TestTable$/././^(" + kinds + ")$" }

// features are the tests of some features, of all kinds.
func features(some string) string { return "^TestTable$/./^(" + some + ")$" }
