// Package lua holds the scripts, one file per decision.
//
// A file is exactly the bytes that Redis runs: its sha1sum is the SHA that
// EVALSHA names, "user_script:12" in an error of Redis is its line 12, and
// redis-cli --eval runs it as it stands. Its header names every key and
// argument with units, what it returns, and what it writes.
//
// Each reads, decides, and then writes or refuses as a whole, and leaves no key
// without a time to live, whichever of its commands fails. A limit's decision
// takes effect at most once, because core/script never sends a call again whose
// reply was lost. Locks, guards and stock ask again by design: their scripts know
// a grant by its token, so the same call twice has the effect of one.
package lua

import _ "embed" // the scripts

var (
	//go:embed limit_bucket.lua
	LimitBucket string
	//go:embed limit_bucket_fast.lua
	LimitBucketFast string
	//go:embed limit_window.lua
	LimitWindow string
	//go:embed limit_sliding.lua
	LimitSliding string
	//go:embed limit_log.lua
	LimitLog string
	//go:embed limit_set.lua
	LimitSet string
	//go:embed limit_refund.lua
	LimitRefund string
	//go:embed limit_reset.lua
	LimitReset string
	//go:embed inflight_acquire.lua
	InflightAcquire string
	//go:embed inflight_restore.lua
	InflightRestore string
	//go:embed inflight_renew.lua
	InflightRenew string
	//go:embed inflight_release.lua
	InflightRelease string
	//go:embed inflight_count.lua
	InflightCount string
	//go:embed lock_acquire.lua
	LockAcquire string
	//go:embed lock_extend.lua
	LockExtend string
	//go:embed lock_release.lua
	LockRelease string
	//go:embed lock_force.lua
	LockForce string
	//go:embed lock_inspect.lua
	LockInspect string
	//go:embed once_start.lua
	OnceStart string
	//go:embed once_end.lua
	OnceEnd string
	//go:embed guard_begin.lua
	GuardBegin string
	//go:embed guard_renew.lua
	GuardRenew string
	//go:embed guard_complete.lua
	GuardComplete string
	//go:embed guard_abandon.lua
	GuardAbandon string
	//go:embed guard_resolve.lua
	GuardResolve string
	//go:embed guard_forget.lua
	GuardForget string
	//go:embed guard_inspect.lua
	GuardInspect string
	//go:embed stock_open.lua
	StockOpen string
	//go:embed stock_reserve.lua
	StockReserve string
	//go:embed stock_renew.lua
	StockRenew string
	//go:embed stock_cancel.lua
	StockCancel string
	//go:embed stock_sweep.lua
	StockSweep string
	//go:embed stock_restock.lua
	StockRestock string
	//go:embed stock_left.lua
	StockLeft string
	//go:embed stock_buyers.lua
	StockBuyers string
	//go:embed stock_forget.lua
	StockForget string
)
