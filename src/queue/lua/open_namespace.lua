--- Note the data model of the namespace, or learn which it has.
--- keys: base
--- args: version
--- returns: the version of the data
--- @include key_of
local meta = keyOf(KEYS[1], nil, 'meta')
redis.call('HSETNX', meta, 'version', ARGV[1])
return tonumber(redis.call('HGET', meta, 'version'))
