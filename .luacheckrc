-- What a script may name: the ground that Redis 6.2 and later, Valkey,
-- Dragonfly and the hosted Redises share. cjson, cmsgpack, struct, bit,
-- os.clock and table.maxn are missing on purpose; so is every global of ours.
std = {
  read_globals = {
    'KEYS', 'ARGV',
    redis = { fields = { 'call', 'pcall', 'error_reply', 'status_reply' } },
    'assert', 'error', 'ipairs', 'next', 'pairs', 'pcall', 'select', 'tonumber', 'tostring', 'type', 'unpack',
    string = { fields = { 'byte', 'char', 'find', 'format', 'gmatch', 'gsub', 'len', 'lower', 'match', 'rep', 'reverse', 'sub', 'upper' } },
    table = { fields = { 'concat', 'insert', 'remove', 'sort' } },
    math = { fields = { 'abs', 'ceil', 'floor', 'fmod', 'huge', 'max', 'min' } },
  },
}
max_line_length = 120

-- The parts of scripts of limits are joined: each names what the others define.
local parts = {
  'call', 'try', 'min', 'max', 'whole', 'now', 'later', 'ticks', 'same', 'fitting', 'remains', 'settled_debt',
  'soonest', 'latest', 'actual', 'settled', 'count', 'estimate', 'marker', 'remembered', 'writes',
  'bucket_settle', 'fast_settle', 'kept_settle', 'kept_add', 'kept_store', 'window_settle', 'sliding_settle', 'log_settle',
  'bucket_read', 'bucket_store', 'fast_read', 'fast_store', 'fast_heal', 'kept_read', 'kept_heal',
  'window_read', 'window_charge', 'calendar_at', 'sliding_read', 'sliding_room', 'sliding_charge',
  'log_read', 'log_heal', 'log_charge', 'log_keep', 'log_wait', 'ban_read', 'ban_count', 'policies_read',
  'estimates_lapsed', 'estimates_add', 'estimates_drop',
}
files['lua/limits'] = { globals = { 'forgiven' }, read_globals = parts, ignore = { '211' } }
files['lua/limit_*.lua'] = { ignore = { '211' } }
