package main

// limitBugs are bugs in what decides in process, and in what asks the scripts.
var limitBugs = []source{
	{"core/limit/internal/kind/bucket.go", []bug{
		{"a bucket in process drains below nothing", "if elapsed := tick - c.now; elapsed > c.n/b.drain {", "if elapsed := tick - c.now; false {"},
		{"a bucket in process grants one unit beyond its capacity", "return largest - c.n }", "return largest - c.n + 1 }"},
		{"a bucket's time is rounded down", "return time.Duration(CeilDiv(units, b.drain)) * b.Tick", "return time.Duration(units/b.drain) * b.Tick"},
		{"a bucket tells of a permit too many", "Remaining:  max(b.capacity-debt, 0) / b.Unit,", "Remaining:  CeilDiv(b.capacity-debt, b.Unit),"},
		{"a slow bucket runs on a clock of seconds", "if b, ok := p.scale(time.Millisecond); ok && b.drain <= b.Unit {", "if b, ok := p.scale(time.Second); ok && b.drain <= b.Unit {"},
	}},
	{"core/limit/internal/kind/window.go", []bug{
		{"a window in process ends a millisecond late", "if c.now-c.from >= w.length {", "if c.now-c.from > w.length {"},
		{"a window in process grants one too many", "return largest - c.n }", "return largest - c.n + 1 }"},
		{"a request begins a window in process anew", "units int64) {\n\tif c.n == 0 {", "units int64) {\n\tif true {"},
		{"a window in process gives back more than is used", "c.n = max(c.n-back, 0)", "c.n -= back"},
		{"a window tells no end while it is used", "if used > 0 {", "if used > of.Limit {"},
	}},
	{"core/limit/internal/kind/sliding.go", []bug{
		{"a sliding window in process rolls only once", "\tif c.now-c.from >= s.length {\n\t\tc.m = 0\n\t}", ""},
		{"a sliding window in process counts the last one as a whole", "return (largest*s.length-c.m*s.rest(c))/s.length - c.n", "return largest - c.m - c.n"},
		{"a sliding window in process gives back into the wrong counter", "end, counter = c.from, &c.m", "end = c.from"},
		{"a sliding window tells of a part of a permit", "max(s.Limit-current-CeilDiv(last*rest, s.length), 0)", "max(s.Limit-current-last*rest/s.length, 0)"},
		{"a sliding window is free with the running one", "f.ResetAfter = time.Duration(rest+s.length) * time.Millisecond", "f.ResetAfter = time.Duration(rest) * time.Millisecond"},
		{"a sliding window tells a wait of this window only", "fading, room, left, passed = current, s.Limit-cost, s.length, rest", "fading, room, left, passed = current, s.Limit-cost, s.length, 0"},
	}},
	{"core/limit/internal/kind/log.go", []bug{
		{"a log in process keeps what has left", "c.log[gone]+l.length <= now", "c.log[gone]+l.length < now"},
		{"a log in process gives back all of a moment", "c.log[last] == mark && int64(last-first) < back", "c.log[last] == mark"},
		{"a log tells the time of the wrong permit", "r.N[2] = leaves(over - 1)", "r.N[2] = leaves(used - 1)"},
		{"a log that others filled tells more than its limit", "counted := c.log[max(int64(len(c.log))-l.Limit, 0):]", "counted := c.log"},
	}},
	{"core/limit/internal/kind/kept.go", []bug{
		{"a kept bucket rounds up what has drained", "return whole / per\n", "return CeilDiv(whole, per)\n"},
		{"a kept bucket in process goes on counting under other numbers", "if debt := c.owes(); debt == 0 || !b.charged(c) ||", "if debt := c.owes(); debt == 0 ||"},
		{"a kept bucket in process gives back under other numbers", "if debt == 0 || !b.charged(c) || c.from > at.Latest", "if debt == 0 || c.from > at.Latest"},
		{"a kept bucket tells a time as if none had passed", "return max(gone(r.N[0]-debt, r.N[2], r.N[3])-r.N[1], 0)", "return max(gone(r.N[0]-debt, r.N[2], r.N[3]), 0)"},
	}},
	{"core/limit/internal/kind/calendar.go", []bug{
		{"a calendar in process outlives its window", "if c.m = min(c.m, w.boundsAt(c.now).at[2]); c.now >= c.m {", "if c.now > c.m {"},
		{"a calendar keeps to windows that have ended", "if b := w.known.Load(); b != nil && b.at[1] <= now && now < b.at[2] {", "if b := w.known.Load(); b != nil {"},
		{"a month has a length", "if w.every != Month {", "if true {"},
		{"a calendar does not learn the time of Redis", "w.ahead.Store(now - time.Now().UnixMilli())", "w.ahead.Store(0)"},
	}},
	{"core/limit/internal/kind/ban.go", []bug{
		{"denials are counted for ever in process", "if rec.denials == 0 || now-rec.from >= b.Within {", "if rec.denials == 0 {"},
		{"a ban in process begins one denial late", "if rec.denials++; rec.denials < b.After {", "if rec.denials++; rec.denials <= b.After {"},
		{"a ban of long ago counts in process", "if now-rec.Last >= b.Most {", "if false {"},
		{"bans in process grow without a bound", "left = min(2*rec.Length, b.Most)", "left = 2 * rec.Length"},
		{"a banned subject has permits left", "\tf.Remaining = 0\n", ""},
		{"a ban in process is for ever", "return max(min(rec.Last-now, rec.Length), 0)", "return rec.Length"},
	}},
	{"core/limit/internal/kind/set.go", []bug{
		{"a shadow's ban denies in process", "*b.Left(readings) > 0 && !b.Shadow {", "*b.Left(readings) > 0 {"},
		{"a question counts in process", "b.Counts() && cost > 0 && !banned", "b.Counts() && !banned"},
		{"the policy with the shortest wait binds", "return f.RetryAfter > than.RetryAfter", "return f.RetryAfter < than.RetryAfter"},
		{"the policy that admits most binds", "return more < others", "return more > others"},
		{"a shadow binds", "\t\tif r.Shadow {\n\t\t\tcontinue\n\t\t}\n", ""},
	}},
	{"core/limit/internal/kind/settle.go", []bug{
		{"a policy in process owes without a bound", "more := max(r.Room(c, r.Largest), 0)", "more := max(r.Room(c, r.Largest), 0) + 1<<40"},
		{"a debt is forgiven that was charged", "return permits - more/r.Unit", "return permits"},
		{"one of n instances settles its own permits only", "n := max(int64(was.Instances), 1)", "n := int64(1)"},
	}},
	{"core/limit/internal/kind/share.go", []bug{
		{"an instance takes the whole limit", "return left / n\n", "return left\n"},
		{"an instance grants nothing of a small limit", "if limit < n && left == limit {", "if false {"},
		{"a permit of one of n counts once", "return min(cost*max(n, 1), r.Limit), true", "return min(cost, r.Limit), true"},
		{"a small bucket drains for one instance", "return min(cost*n, r.Heaviest)", "return min(cost, r.Heaviest)"},
		{"a cost above the share tells a wrong wait", "f.RetryAfter = retryShare", "f.RetryAfter = 0"},
	}},
	{"core/limit/internal/kind/rule.go", []bug{
		{"a policy of requests is settled", "return !told.Refused() && !r.Once", "return !told.Refused()"},
		{"a cost beyond what is exact is sent", "max(min(r.Costs(cost), r.Limit+1), -r.Limit-1)", "r.Costs(cost)"},
	}},
	{"core/limit/internal/kind/moment.go", []bug{
		{"a moment may lie in two windows", "return off > 0 && 2*(first-end) < off && 2*(end-last) < off", "return off != 77 && 2*(first-end) < length && 2*(end-last) < length"},
	}},
	{"core/limit/internal/kind/foresee.go", []bug{
		{"a remembered log tells of a larger cost", "return l.atLeast(aged), cost <= denied", "return l.atLeast(aged), true"},
		{"a ban does not age", "= max(was.Ban-passed.Milliseconds(), 0), ", "= was.Ban, "},
	}},
	{"core/limit/hold.go", []bug{
		{"a hold lasts a millisecond less", "kind.CeilDiv(int64(d), int64(time.Millisecond))", "int64(d / time.Millisecond)"},
	}},
	{"core/limit/override.go", []bug{
		{"an override lasts a millisecond less", "kind.CeilDiv(int64(d), int64(time.Millisecond)), kind.MostBan", "int64(d / time.Millisecond), kind.MostBan"},
		{"to ask for an override prolongs it", "case l.remote == nil && duration < 0:", "case l.remote == nil && duration < -1:"},
		{"an override by a process is news to it", "\tl.overrides.learn(subject, text, asked.Add(time.Duration(duration)*time.Millisecond))\n\tl.changed", "\tl.changed"},
		{"a cost that only an override allows is an error", "if err == nil || l.overrides == nil || l.remote == nil", "if true || l.remote == nil"},
		{"a wait learns of three overrides in all", "if answered {", "if answered && false {"},
	}},
	{"core/limit/overrides.go", []bug{
		{"a process uses an override that has ended", "if !ok || !now.Before(known.until) {", "if !ok {"},
		{"what a plan has nothing to replace by is a fault", "if l.set != o.first {", "if false {"},
		{"plans of one signature share their terms", "overriding{l.set, text}", "overriding{nil, text}"},
		{"the last of two policies for one counts", "err == nil && twice {", "err == nil && twice && false {"},
		{"an override loses the terms of the policy", "d.name, d.unit, d.terms = of.name, of.unit, of.terms", "d.name, d.unit, d.terms = of.name, of.unit, terms{kept: true}"},
		{"a policy of another window is replaced", "|| formOf(of) != formOf(p) {", "|| formOf(of)[:3] != formOf(p)[:3] {"},
	}},
	{"core/limit/internal/cells/banrecords.go", []bug{
		{"a reading of before a change is believed", "case asked < rec.Since:", "case false:"},
		{"a ban that was lifted elsewhere holds in an outage", "case left == 0 && rec.Told && rec.Left(now) > 0:", "case false:"},
		{"a shorter ban replaces one that began here", "case left > 0 && (rec.Told || now+left >= rec.Last):", "case left > 0:"},
		{"a process knows no bans of Redis", "\tif len(set.Bars) > 0 {\n\t\tb.noteBans(set, of)\n\t}\n", ""},
		{"a ban in an outage opens", "if !set.Banned(readings) {", "if true {"},
	}},
	{"core/limit/internal/cells/bansbyend.go", []bug{
		{"the ban that lasts longest is forgotten", "return (*b)[i].end < (*b)[j].end", "return (*b)[i].end > (*b)[j].end"},
		{"bans have no bound", "if len(b.ends) > b.room {", "if false {"},
	}},
	{"core/limit/limiter.go", []bug{
		{"a peek counts as a decision", "\tif !peek {\n\t\tl.tell(ctx, cost, &d, err, took)\n\t}", "\tl.tell(ctx, cost, &d, err, took)"},
		{"an empty subject is one", "if subject == \"\" {\n\t\treturn cmp.Or(l.checkCost(cost), ErrSubject)\n\t}", ""},
		{"a peek is answered from memory", "cost == 0 || peek || ctx.Err() != nil {", "cost == 0 || ctx.Err() != nil {"},
	}},
	{"core/limit/layers.go", []bug{
		{"the estimate of a denied request is renewed", "err == nil && d.Allowed && !peek {", "err == nil && !peek {"},
		{"a ban does not hold with FailOpen", "case !l.local.Banned(l.set, &q.Request):", "default:"},
		{"a caller's own deadline is a failure of Redis", "case ask.IsCallers(cause) || l.opts.Fail == store.FailClosed:", "case ask.IsCallers(nil) || l.opts.Fail == store.FailClosed:"},
		{"a degraded decision is not marked", "d.Degraded, d.Cause = true, cause", "d.Cause = cause"},
		{"a degraded denial is remembered", "if err == nil && !d.Allowed && !d.Degraded {", "if err == nil && !d.Allowed {"},
	}},
	{"core/limit/decision.go", []bug{
		{"a shadow's ban is told as a ban", "if s.Banned && !s.Shadow {", "if s.Banned {"},
	}},
	{"core/limit/cost.go", []bug{
		{"a cost above the capacity is sent", "if cost < 0 || cost > capacity {", "if cost < 0 {"},
		{"a policy of requests bounds the cost", "!r.Shadow && !r.Once && r.Limit < capacity", "!r.Shadow && r.Limit < capacity"},
		{"a shadow bounds the cost", "!r.Shadow && !r.Once && r.Limit < capacity", "!r.Once && r.Limit < capacity"},
	}},
	{"core/limit/refund.go", []bug{
		{"a denial is given back", "if q.Peek || q.denied {", "if q.Peek {"},
	}},
	{"core/limit/settle.go", []bug{
		{"a log can be settled", "if r.Entries && !r.Once {", "if r.Entries && r.Shadow {"},
		{"a settlement leaves remembered denials", "func (l *Limiter) changed(subject string) {\n\tl.memory.Changed(subject)", "func (l *Limiter) changed(subject string) {"},
		{"what is given back wakes no waiter", "\tl.queues.Changed(subject)\n", ""},
	}},
	{"core/limit/conclude.go", []bug{
		{"a refund of long ago is sent", "c.how != settles && time.Since(q.Answered) >= longest {", "c.how != settles && longest < 0 {"},
		{"a decision is settled twice", "if c.how != how || c.stage.Load() != concluding {", "if c.how != how {"},
		{"a settlement becomes a refund", "if c.how != how || c.stage.Load() != concluding {", "if c.stage.Load() != concluding {"},
		{"a conclusion is repeated beyond its marker", "return !c.until.IsZero() && time.Now().After(c.until)", "return false"},
		{"a conclusion that Redis did not confirm is dropped", "\t\t\tl.late.Keep(time.Now(), math.MaxInt64, c.again)\n", "\t\t\t_ = math.MaxInt64\n"},
		{"a call that did not run shortens the time for repetitions", "if first && told.Untouched {", "if false {"},
		{"a dropped conclusion tells nobody", "background.Go(func() { told(err) })", "_, _ = err, told"},
	}},
	{"core/limit/internal/wire/clock.go", []bug{
		{"an old reading of the clock is used", "return s.got.Sub(of.Asked).Abs() > max(time.Since(of.Answered), 10*time.Second)", "return false"},
	}},
	{"core/limit/internal/denials/denials.go", []bug{
		{"a denial covers smaller costs", "if !known || cost < was.cost ||", "if !known ||"},
		{"a denial is remembered for ever", "now >= was.until ||", ""},
		{"a refund ends no remembered denial", "|| m.epoch(subject).Load() != was.epoch {", "{"},
		{"a denial holds to the last moment", "until := at + min(int64(kind.Sure(time.Duration(holds))), m.most)", "until := at + min(holds+int64(time.Millisecond), m.most)"},
		{"denials that are to be counted are remembered", "Denied && !set.Bans: //", "Denied: //"},
	}},
	{"core/limit/internal/cells/cells.go", []bug{
		{"entries of logs have no bound", "for b.entries > b.most*entriesPerState && b.cells.Len() > len(set.Rules) {", "for false {"},
		{"a reset leaves the seed", "\t\tb.seeds.Remove(subject, set.Rules[i].Tail)\n", ""},
		{"a reset in process forgets nothing", "\t\t\tb.cells.Remove(key)\n", ""},
		{"a denial is kept in memory", "if resumed || charged && !of.Readings[i].Refused() {", "if resumed || charged || true {"},
	}},
	{"core/limit/internal/cache/cache.go", []bug{
		{"what is kept has no bound", "c.room = most / len(c.shards)", "c.room = 100 * most"},
		{"the string of a request is kept", "strings.Clone(key.Subject)", "strings.Clone(\"\") + key.Subject"},
	}},
	{"core/limit/internal/cells/seed.go", []bug{
		{"a seed is used again", "last, known := b.seeds.Remove(", "last, known := b.seeds.Find("},
		{"a seed gives what an outage has taken", "if remains(r, &seeded) < remains(r, cells[i]) {", "if true {"},
	}},
	{"core/limit/internal/prepaid/accounts.go", []bug{
		{"permits are kept beyond their window", "end = min(end, at+int64(kind.Sure(", "end = min(end, at+int64(time.Second+kind.Sure("},
		{"a reset leaves prepaid permits", "\t\t\t\tp.close()\n\t\t\t\tone.taken.Add(p.demand())", "\t\t\t\tone.taken.Add(p.demand())"},
		{"more than an eighth is charged ahead", "one.of.most, one.remaining/8)", "one.of.most, one.remaining)"},
		{"permits that nobody uses are never given back", "\t\t_ = p.giveBack(context.Background())\n", ""},
		{"an impatient caller ends the charge for others", "one.charge(context.WithoutCancel(ctx), q, by, subject, cost)", "one.charge(ctx, q, by, subject, cost)"},
	}},
	{"core/limit/internal/prepaid/permits.go", []bug{
		{"permits are granted after their end", "if now >= p.end {", "if false {"},
		{"a prepaid permit is given back twice", "if p.given[index/64].Or(bit)&bit != 0 {", "if p.given[index/64].Or(bit)&bit == 77 {"},
		{"permits are given back that have ended", "if word&ended == ended {", "if false {"},
	}},
	{"core/limit/bucket.go", []bug{
		{"a prepaid bucket keeps its burst", "p.Burst = p.burst() - int64(refills)", "p.Burst = p.burst()"},
		{"what refills in a Term is rounded down", "refills := math.Ceil(", "refills := math.Floor("},
	}},
	{"core/limit/internal/wire/read.go", []bug{
		{"a shadow denies the callers of a run", "if !r.Shadow {\n\t\t\tgranted = min", "if true {\n\t\t\tgranted = min"},
		{"an enforced policy denies no caller of a run", "granted = min(granted, bars[0])", "granted = min(granted, granted)"},
		{"a ban denies no caller of a run", "granted = 0\n", "granted = min(granted, granted)\n"},
		{"a shadow's ban denies the callers of a run", "\t\t\tif !b.Shadow {\n\t\t\t\tgranted = 0", "\t\t\tif true {\n\t\t\t\tgranted = 0"},
		{"a run tells each caller of all", "max(charged-place, 0)*r.Units(cost)", "0"},
		{"a run tells a caller of those behind", "max(charged-place, 0)*r.Units(cost)", "max(charged-place-1, 0)*r.Units(cost)"},
		{"each caller of a run is granted", "Denied: place > bars[0]}", "Denied: false}"},
		{"a ban that begins in a run is told to all", "begun > 0 && place >= with:", "begun > 0 && with > -1:"},
		{"a banned shadow is told as charged", "if barred[i] || cost <= 0 {", "if cost <= 0 {"},
	}},
	{"core/limit/internal/line/foresee.go", []bug{
		{"a wait beyond the limit is none", "figures[i].RetryAfter+r.Beyond(over, figures[i].Left))", "figures[i].RetryAfter)"},
	}},
	{"core/limit/internal/line/queue.go", []bug{
		{"the denial of a log outlives the waiter that it is about", "!q.last.Allowed && w.set.Entries {", "!q.last.Allowed && w.at < -1 {"},
		{"a waiter that leaves wakes nobody", "if first == w && q.order.left > 0 {", "if first == w && q.order.left < 0 {"},
		{"waiters have no bound", "if !room && all.waiting.Add(1) > all.most {", "if !room && all.waiting.Add(1) < 0 {"},
	}},
	{"core/limit/internal/line/forecast.go", []bug{
		{"waiters ask all the time", "rest = max(rest, told.retryAfter)", "rest = max(rest, 0)"},
	}},
	{"core/limit/all.go", []bug{
		{"All keeps what was granted beside a denial", "\tif !j.Allowed {\n\t\tj.Kept = a.giveBack(ctx)\n\t}\n", ""},
		{"a denied subject of All is asked with the others", "if alone < 0 || a.ask(ctx, alone) {", "if true {"},
		{"the shortest denial of All binds", "return d.RetryAfter > than.RetryAfter", "return d.RetryAfter < than.RetryAfter"},
	}},
	{"core/limit/internal/wire/estimates.go", []bug{
		{"an estimate that a shadow has not taken is renewed", "of.Cost > 0 && !of.Readings[i].Refused() {", "of.Cost > 0 && of.Readings[i].Ban < 1<<40 {"},
		{"estimates are never renewed", "now.Add(lease.Pause(length, true)), now.Add(length))", "now.Add(1000*length), now.Add(1001*length))"},
	}},
	{"core/limit/internal/wire/remote.go", []bug{
		{"a calendar far from the clock of Redis fails", "case moved && !again:", "case moved && !again && false:"},
		{"a lone policy with a ban runs without it", "&& bars(set) == 0 &&", "&&"},
		{"a shadow alone is enforced", "len(set.Rules) == 1 && !first.Shadow &&", "len(set.Rules) == 1 &&"},
	}},
	{"core/limit/internal/wire/acts.go", []bug{
		{"a reset leaves estimates", "\t\t\tkeys = append(keys, r.estimatesOf(rule, subject))\n", ""},
	}},
}

// kindBugs are bugs in what decides in process, which the tests beside it must catch.
var kindBugs = []source{
	{"core/limit/internal/kind/civil.go", []bug{
		{"a day begins at midnight, whatever the clocks skip", "\t\tif start.Before(t) {\n\t\t\tstart = t\n\t\t}\n", ""},
		{"a month begins on its second day", "return year, month + time.Month(n), 1", "return year, month + time.Month(n), 2"},
		{"a week begins on Sunday", "day - (int(t.Weekday())+6)%7 + 7*n", "day - int(t.Weekday()) + 7*n"},
		{"clocks set to a full hour begin no hour", "if offset, _ := c.offset(until); (until.Unix()+int64(offset/time.Second))%hour == 0 {\n\t\t\treturn until\n\t\t}", "if offset, _ := c.offset(until); offset > 1<<62 {\n\t\t\treturn until\n\t\t}"},
	}},
	{"core/limit/internal/kind/log.go", []bug{
		{"a log keeps its memory", "if c.room > 2*len(c.log)+8 {", "if false {"},
	}},
	{"core/limit/internal/kind/sliding.go", []bug{
		{"an aged sliding window rolls only once", "\tfor range 2 {\n", "\tfor range 1 {\n"},
	}},
	{"core/limit/internal/kind/set.go", []bug{
		{"policies are left out of a signature", "%d:%s:%t:%t:%s \", len(r.Tail)", "%d:%.0s:%t:%t:%s \", len(r.Tail)"},
		{"terms are left out of a signature", "r.Shadow, r.Once, r.Kept)", "r.Shadow, false, r.Kept)"},
	}},
}

// wireBugs are bugs in how Redis is asked, which the tests beside it must catch.
var wireBugs = []source{
	{"core/limit/internal/wire/clock.go", []bug{
		{"a moment is taken for exact", "Soonest: s.at + micros(soonest-max(soonest, -soonest)/kind.Drift),", "Soonest: s.at + micros(soonest),"},
		{"the end of a moment is taken for exact", "Latest:  s.at - micros(-latest-max(latest, -latest)/kind.Drift),", "Latest:  s.at + micros(latest),"},
		{"a moment ends too soon by a microsecond", "Latest:  s.at - micros(-latest-", "Latest:  s.at + micros(latest+"},
		{"a moment before the reading begins too late", "soonest-max(soonest, -soonest)/kind.Drift", "soonest-soonest/kind.Drift"},
		{"a reading was made when it was asked for", "from.Sub(s.got), to.Sub(s.sent)", "from.Sub(s.sent), to.Sub(s.sent)"},
		{"microseconds are cut off", "if d%time.Microsecond < 0 {", "if false {"},
	}},
}

// lineBugs are bugs in how callers wait, which the tests beside it must catch.
var lineBugs = []source{
	{"core/limit/internal/line/order.go", []bug{
		{"those ahead do not count", "sum = sum.Plus(o.sums[i])\n\t}\n\treturn sum", "}\n\treturn sum"},
		{"what was granted counts as ahead", "\tw.cost = 0\n", ""},
		{"an order keeps the places of those that have left", "gone < o.left+64 {", "gone < 1<<30 {"},
	}},
	{"core/limit/internal/line/queue.go", []bug{
		{"a denial of before a refund is believed", "if !a.Allowed && q.freed != freed {", "if false {"},
	}},
	{"core/limit/internal/line/forecast.go", []bug{
		{"a waiter that comes too late waits", "if told.denied && w.most != nil && rest > left+late {", "if told.denied && w.most == nil && rest > left+late {"},
		{"a denial between two looks is not looked at", "\tif !q.pending() && q.again {", "\tif q.pending() && q.again {"},
	}},
}
