-- Writes a message's record if nobody else wrote it since it was read.
--
-- KEYS 1 the record, 2 all messages that have not ended, by when they are due, 3 those that failed, by when
-- ARGV 1 the version that was read, 0 for none; 2 the message id; 3 the record
--      4 when it is due, empty if it has ended; 5 when it failed, empty if it did not
--      6 for how many ms it is kept from now on, empty for ever; 7 failures before this time are forgotten
-- Returns the new version, or 0 if somebody else was faster.
local version = tonumber(redis.call('HGET', KEYS[1], 'version') or 0)
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
