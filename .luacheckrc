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
