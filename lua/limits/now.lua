local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2] -- in microseconds
