-- Writes a message's record if nobody else wrote it since it was read.
--
-- KEYS 1 the record, 2 all messages that have not ended, by when they are due, 3 those that failed, by when
-- ARGV 1 the version that was read, 0 for none; 2 the message id; 3 the record
--      4 when it is due, empty if it has ended; 5 when it failed, empty if it did not
--      6 for how many ms it is kept from now on, empty for ever; 7 failures before this time are forgotten
-- Returns the new version, or 0 if somebody else was faster.

-- What goes wrong must do so before the first write: a script is not rolled back. These two fail if
-- another type stands there.
redis.call('ZCARD', KEYS[2])
redis.call('ZCARD', KEYS[3])
local version = redis.call('HGET', KEYS[1], 'version')
if not version then
  if redis.call('EXISTS', KEYS[1]) == 1 then
    return redis.error_reply('BADRECORD the hash ' .. KEYS[1] .. ' has no version')
  end
  version = 0
end
version = tonumber(version)
if not version then
  return redis.error_reply('BADRECORD the version in ' .. KEYS[1] .. ' is no number')
end
if version ~= tonumber(ARGV[1]) then
  return 0
end
redis.call('HSET', KEYS[1], 'version', version + 1, 'record', ARGV[3])
if ARGV[4] == '' then
  redis.call('ZREM', KEYS[2], ARGV[2])
else
  redis.call('ZADD', KEYS[2], ARGV[4], ARGV[2])
end
if ARGV[5] == '' then
  redis.call('ZREM', KEYS[3], ARGV[2])
else
  redis.call('ZADD', KEYS[3], ARGV[5], ARGV[2])
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', '(' .. ARGV[7])
end
if ARGV[6] == '' then
  redis.call('PERSIST', KEYS[1])
else
  redis.call('PEXPIRE', KEYS[1], ARGV[6])
end
return version + 1
