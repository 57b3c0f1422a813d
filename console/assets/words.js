// What the page says, in English and Chinese. A {name} is filled in.
const en = {
  skip: 'Skip to the figures', connecting: 'Connecting …', pause: 'Pause', go: 'Go on', paused: 'Paused',
  disconnected: 'No connection to the service; trying again', forbidden: 'No access any more', crowded: 'Too many pages are open; trying again', cancel: 'Cancel',
  now: 'Now', decisions: 'Decisions in the last minute', bySecond: 'Second by second', limits: 'Limits', servers: 'Redis servers',
  locks: 'Locks', guards: 'Guards', stocks: 'Stock', lookUp: 'Look up', of: 'Of',
  noLimits: 'No limiter was made on this store.', noServers: 'No server was asked yet.',
  scope: 'This process alone. A call is counted under the policy that decided it.',
  well: 'All is well', away: 'Redis does not answer: {names}', held: 'Calls to Redis are held back', failing: 'Redis has not answered calls: {names}',
  degraded: 'Decisions are made without Redis', refusing: 'Requests fail, since Redis does not decide', doubt: 'Work is in doubt', overtaken: 'Work may have run twice', 'failed before': '{n} calls failed in the last minute', 'degraded before': 'In the last minute, {n} decisions were made without Redis', up: 'up {n}', disagreed: 'An item is not sold any more: its record disagrees with itself', lost: 'A lease was lost',
  granted: 'admitted', denied: 'denied', banned: 'banned', failed: 'failed', without: 'hollow: without Redis',
  'h.limiter': 'Limiter', 'h.policy': 'Policy', 'h.minute': 'Last minute', 'h.granted': 'Admitted', 'h.denied': 'Denied', 'h.banned': 'Banned', 'h.failed': 'Failed',
  'h.without': 'Without Redis', 'h.active': 'In flight here', 'h.waiting': 'Waiting', 'h.server': 'Server', 'h.state': 'State', 'h.since': 'Since',
  'h.locker': 'Locker', 'h.held': 'Held here', 'h.got': 'Got', 'h.taken': 'Held by others', 'h.lost': 'Lost', 'h.guard': 'Guard', 'h.running': 'Running here', 'h.begun': 'Begun',
  'h.done': 'Done', 'h.replayed': 'Result given again', 'h.doubt': 'In doubt', 'h.overtaken': 'Overtaken', 'h.stock': 'Stock', 'h.reserved': 'Reserved', 'h.sold': 'Sold',
  'h.soldout': 'Sold out', 'h.refused': 'Refused', 'h.lapsed': 'Lapsed', 'h.cancelled': 'Cancelled', 'h.abandoned': 'Given up', 'h.already': 'Already running', 'h.background': 'In the background', 'h.ago': 'Seconds ago',
  't.rate': 'decisions a second', 't.denied': 'denied, last minute', 't.without': 'without Redis, last minute', 't.locks': 'locks held here', 't.guards': 'guarded runs here',
  't.doubt': 'in doubt, last minute', 't.stock': 'reservations held here', 't.servers': 'servers that answer',
  answers: 'answers', silent: 'does not answer', holds: 'calls held back', heldTag: 'held back', shadow: 'shadow: {n} would be denied', others: 'all others', noPolicy: '(no policy)', none: 'nothing in the last minute',
  ago: '60 s ago', nowAxis: 'now', perSecond: '{n}/s', summary: '{name}, last minute: {what}',
  limit: 'limit', inflight: 'in flight', lock: 'lock', guard: 'guard', stock: 'stock', 'k.limit': 'Subject', 'k.inflight': 'Subject', 'k.lock': 'Key', 'k.guard': 'Key', 'k.stock': 'Item',
  subject: 'Subject', looking: 'Asking Redis …', 'f.limit': 'Limit', 'f.left': 'Left', 'f.retry': 'Next in', 'f.reset': 'Whole in', 'f.next': 'Next request', yes: 'admitted', no: 'denied', barred: 'banned',
  bannedFor: 'Banned for', banUnknown: 'The page cannot tell whether it is banned.', degradedFound: 'Redis did not answer: this is what the failure mode says.', 'f.inflight': 'In flight, in all processes', 'f.state': 'State', 'f.owner': 'Owner', 'f.holds': 'Holds',
  'f.fence': 'Last fence', 'f.lease': 'Lease ends in', 'f.attempt': 'Attempts', 'f.expires': 'Forgotten in', 'f.size': 'Result', bytes: '{n} bytes', never: 'never',
  'f.units': 'Units', 'f.for': 'For sale', 'f.held': 'Held', 'f.sold': 'Sold', free: 'free', taken: 'held', 'f.shadow': 'shadow',
  's.': 'unknown key', 's.pending': 'running, or its process is gone', 's.free': 'nothing done', 's.done': 'done', 's.noresult': 'done, without a result', 's.in doubt': 'in doubt',
  'a.reset': 'Reset', 'a.ban': 'Ban', 'a.unban': 'Lift the ban', 'a.force': 'Force the lock', 'a.nothing done': 'Resolve: nothing was done', 'a.done': 'Resolve: it was done', 'a.forget': 'Forget', 'a.restock': 'Restock',
  'c.reset': 'Forget what “{key}” has used of {name}, and lift its hold if it has one? It may use all of it again at once.',
  'c.ban': 'Ban “{key}” under {name} for {seconds} s? Each of its requests is denied.',
  'c.unban': 'Lift the ban of “{key}” under {name}, and forget the denials before?',
  'c.force': 'End the lock “{key}” of {name}? If its holder is alive, two may work side by side.',
  'c.nothing done': 'Note that nothing was done for “{key}” of {name}? The next caller runs.',
  'c.done': 'Note that “{key}” of {name} was done? Nobody runs it again, and there is no result to give.',
  'c.forget': 'Delete what is known of “{key}” of {name}? The next caller runs, even beside a run in progress.',
  'c.restock': 'Add {units} units to “{key}” of {name}, once for the id “{id}”?',
  'p.seconds': 'For how many seconds', 'p.units': 'Units', 'p.id': 'Id, such as the number of the delivery',
  did: 'Done for “{key}”: {what}.', nothing: 'There was nothing to act upon: is “{key}” spelled right?',
  'tag.mismatched': 'key used for something else: {n}', 'tag.no result': 'done, no result to give: {n}', 'tag.disagreed': 'record disagrees: {n}',
  listed: '{one}, {other}', about: '{what} ({of})', called: '{what}: {name}', sentences: '{one} {other}',
  'e.empty': 'Type what to look up.', 'e.id': 'The id is missing.', 'e.units': 'That number of units is out of range.', 'e.seconds': 'That number of seconds is out of range.', 'e.quantity': 'That id was used for another number of units.',
  'e.unknown item': 'There is no such item.', 'e.disagrees': 'The record of the item disagrees with itself.', 'e.in flight': 'The work is still running.', 'e.not in doubt': 'The key is not in doubt.', 'e.changed': 'It has changed since it was looked up: look again.',
  'e.not executed': 'Redis did not do it.', 'e.maybe executed': 'Redis did not answer: it may have done it, or may do it yet.', 'e.configuration': 'Redis refuses it by its configuration: a right or a password is missing.',
  'e.canceled': 'It took too long.', 'e.failed': 'It failed.', 'e.forbidden': 'You may not do that.', 'e.unreachable': 'The service could not be reached.', 'e.no answer': 'No answer: it may have been done, or may be done yet.',
  'e.unknown primitive': 'The service does not offer that any more. Load the page again.', 'e.unknown action': 'The service does not offer that action any more. Load the page again.', 'e.request': 'That is too long, or a number in it is not whole.',
};
const zh = {
  skip: '跳到数据', connecting: '正在连接…', pause: '暂停', go: '继续', paused: '已暂停',
  disconnected: '与服务的连接中断，正在重试', forbidden: '已无访问权限', crowded: '打开的页面过多，正在重试', cancel: '取消',
  now: '当前', decisions: '最近一分钟的判定', bySecond: '逐秒查看', limits: '限流', servers: 'Redis 服务器',
  locks: '锁', guards: '幂等守卫', stocks: '库存', lookUp: '查询', of: '对象',
  noLimits: '此 store 上没有限流器。', noServers: '尚未访问任何服务器。',
  scope: '仅限本进程。每次调用计入作出判定的策略。',
  well: '一切正常', away: 'Redis 无响应：{names}', held: '对 Redis 的调用已暂停发送', failing: 'Redis 有调用未响应：{names}',
  degraded: '正在不经 Redis 作出判定', refusing: 'Redis 无法判定，请求失败', doubt: '有任务结果未知', overtaken: '有任务可能执行了两次', 'failed before': '最近一分钟有 {n} 次调用失败', 'degraded before': '最近一分钟有 {n} 次判定不经 Redis', up: '已运行 {n}', disagreed: '有商品已停售，其记录自相矛盾', lost: '有租约丢失',
  granted: '放行', denied: '拒绝', banned: '封禁', failed: '失败', without: '空心：不经 Redis',
  'h.limiter': '限流器', 'h.policy': '策略', 'h.minute': '最近一分钟', 'h.granted': '放行', 'h.denied': '拒绝', 'h.banned': '封禁', 'h.failed': '失败',
  'h.without': '不经 Redis', 'h.active': '本进程处理中', 'h.waiting': '等待中', 'h.server': '服务器', 'h.state': '状态', 'h.since': '持续',
  'h.locker': '锁组', 'h.held': '本进程持有', 'h.got': '获得', 'h.taken': '被他人持有', 'h.lost': '丢失', 'h.guard': '守卫', 'h.running': '本进程运行中', 'h.begun': '开始',
  'h.done': '完成', 'h.replayed': '返回已有结果', 'h.doubt': '结果未知', 'h.overtaken': '被接管', 'h.stock': '库存', 'h.reserved': '预留', 'h.sold': '售出',
  'h.soldout': '售罄', 'h.refused': '请求不符', 'h.lapsed': '过期', 'h.cancelled': '取消', 'h.abandoned': '放弃', 'h.already': '已在运行', 'h.background': '后台处理', 'h.ago': '秒前',
  't.rate': '判定/秒', 't.denied': '拒绝（最近一分钟）', 't.without': '不经 Redis（最近一分钟）', 't.locks': '本进程持有的锁', 't.guards': '本进程运行的任务',
  't.doubt': '结果未知（最近一分钟）', 't.stock': '本进程持有的预留', 't.servers': '正常的服务器',
  answers: '正常', silent: '无响应', holds: '调用已暂停', heldTag: '已暂停', shadow: '影子策略：{n} 次会被拒绝', others: '其他全部', noPolicy: '（无策略）', none: '最近一分钟没有调用',
  ago: '60 秒前', nowAxis: '现在', perSecond: '{n}/秒', summary: '{name}，最近一分钟：{what}',
  limit: '限流', inflight: '并发', lock: '锁', guard: '守卫', stock: '库存', 'k.limit': '主体', 'k.inflight': '主体', 'k.lock': '键', 'k.guard': '键', 'k.stock': '商品',
  subject: '主体', looking: '正在查询 Redis…', 'f.limit': '上限', 'f.left': '剩余', 'f.retry': '可重试', 'f.reset': '完全恢复', 'f.next': '下一次请求', yes: '放行', no: '拒绝', barred: '封禁',
  bannedFor: '封禁剩余', banUnknown: '无法得知是否被封禁。', degradedFound: 'Redis 无响应：以下为降级模式的判定。', 'f.inflight': '所有进程处理中', 'f.state': '状态', 'f.owner': '持有者', 'f.holds': '重入次数',
  'f.fence': '最近的 fence', 'f.lease': '租约剩余', 'f.attempt': '执行次数', 'f.expires': '记录保留', 'f.size': '结果', bytes: '{n} 字节', never: '永久',
  'f.units': '总数', 'f.for': '可售', 'f.held': '预留', 'f.sold': '售出', free: '空闲', taken: '被持有', 'f.shadow': '影子',
  's.': '未知的键', 's.pending': '运行中，或其进程已消失', 's.free': '未执行', 's.done': '已完成', 's.noresult': '已完成，无结果', 's.in doubt': '结果未知',
  'a.reset': '重置', 'a.ban': '封禁', 'a.unban': '解除封禁', 'a.force': '强制释放', 'a.nothing done': '裁定：未执行', 'a.done': '裁定：已完成', 'a.forget': '删除记录', 'a.restock': '补货',
  'c.reset': '清除“{key}”在 {name} 中的用量，并解除可能存在的暂停？它可以立即再次用满。',
  'c.ban': '在 {name} 中封禁“{key}” {seconds} 秒？它的每个请求都会被拒绝。',
  'c.unban': '解除“{key}”在 {name} 中的封禁，并清除之前的拒绝次数？',
  'c.force': '结束 {name} 的锁“{key}”？如果持有者仍在运行，可能有两个任务同时执行。',
  'c.nothing done': '裁定 {name} 的“{key}”未执行？下一个调用者将会执行。',
  'c.done': '裁定 {name} 的“{key}”已完成？不会再次执行，也没有结果可返回。',
  'c.forget': '删除 {name} 中“{key}”的记录？即使有任务正在运行，下一个调用者也会执行。',
  'c.restock': '为 {name} 的“{key}”增加 {units} 件（编号“{id}”只计一次）？',
  'p.seconds': '封禁秒数', 'p.units': '数量', 'p.id': '编号，例如到货单号',
  did: '已对“{key}”完成：{what}。', nothing: '没有可操作的内容：“{key}”是否拼写正确？',
  'tag.mismatched': '键用于其他请求：{n}', 'tag.no result': '已完成，无结果可返回：{n}', 'tag.disagreed': '记录自相矛盾：{n}',
  listed: '{one}，{other}', about: '{what}（{of}）', called: '{what}：{name}', sentences: '{one}{other}',
  'e.empty': '请输入要查询的内容。', 'e.id': '缺少编号。', 'e.units': '数量超出范围。', 'e.seconds': '秒数超出范围。', 'e.quantity': '该编号已用于其他数量。',
  'e.unknown item': '没有该商品。', 'e.disagrees': '该商品的记录自相矛盾。', 'e.in flight': '任务仍在运行。', 'e.not in doubt': '该键的结果并非未知。', 'e.changed': '查询之后已有变化，请重新查看。',
  'e.not executed': 'Redis 没有执行。', 'e.maybe executed': 'Redis 未响应：可能已执行，也可能稍后执行。', 'e.configuration': 'Redis 的配置拒绝了操作：缺少权限或密码。',
  'e.canceled': '耗时过长。', 'e.failed': '操作失败。', 'e.forbidden': '没有操作权限。', 'e.unreachable': '无法连接服务。', 'e.no answer': '没有收到回答：可能已执行，也可能稍后执行。',
  'e.unknown primitive': '服务已不再提供此项，请重新加载页面。', 'e.unknown action': '服务已不再提供此操作，请重新加载页面。', 'e.request': '内容过长，或其中的数字不是整数。',
};
const all = { en, zh };
const root = document.documentElement;

export const language = () => (root.lang === 'zh' ? 'zh' : 'en');

// add adds the words of another page that uses this module.
export function add(words) { for (const l of Object.keys(all)) Object.assign(all[l], words[l]); }

export function say(key, values = {}) {
  const text = all[language()][key] ?? en[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? '');
}

export const number = (n) => n.toLocaleString(root.lang);

// duration is how long milliseconds are, in the largest unit that gives two at least.
export function duration(ms) {
  const units = [['day', 864e5], ['hour', 36e5], ['minute', 6e4], ['second', 1e3]];
  const [unit, size] = units.find(([, size]) => ms >= 2 * size) ?? ['second', 1e3];
  const n = ms / size;
  return new Intl.NumberFormat(root.lang, { style: 'unit', unit, unitDisplay: 'short', maximumFractionDigits: n < 10 ? 1 : 0 }).format(n);
}

// sayAll fills in whatever of the document has its words in data-say.
export function sayAll() {
  for (const e of document.querySelectorAll('[data-say]')) e.textContent = say(e.dataset.say);
}

// choose has the page speak another language, and its address say so.
export function choose(lang) {
  root.lang = lang;
  const address = new URL(location.href);
  address.searchParams.set('lang', lang);
  history.replaceState(null, '', address);
  sayAll();
}
