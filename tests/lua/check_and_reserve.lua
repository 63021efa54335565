-- Checks and counts one message of a mailbox, as a script that needs no module does it: in a minute
-- and a UTC day as a clock on the wall shows them, each a counter under a key of its own.
--
-- KEYS[1]  counter of messages in this minute, named by the mailbox and the minute since 1970
-- KEYS[2]  counter of recipients in this day, named by the mailbox and the day since 1970
-- ARGV     recipients of the message, messages a minute, recipients a day
-- Replies  1 or 0 (allowed or not), the reason (ok, minute, day), ms to wait
--
-- The caller reads the clock for the keys' names, so that both keys are declared.

local MINUTE_MS = 60000
local DAY_MS = 86400000
-- Longer than their windows: a counter must not go while its window lasts.
local MINUTE_KEY_S = 120
local DAY_KEY_S = 26 * 3600

local recipients = tonumber(ARGV[1])
local per_minute = tonumber(ARGV[2])
local per_day = tonumber(ARGV[3])

local function ms_to_next(window_ms)
  local time = redis.call('TIME')
  local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
  return window_ms - now_ms % window_ms
end

local minute_used = tonumber(redis.call('GET', KEYS[1]) or '0')
local day_used = tonumber(redis.call('GET', KEYS[2]) or '0')

-- The day first: who is denied by both waits for it in any case.
if day_used + recipients > per_day then
  return {0, 'day', ms_to_next(DAY_MS)}
end
if minute_used + 1 > per_minute then
  return {0, 'minute', ms_to_next(MINUTE_MS)}
end

redis.call('INCRBY', KEYS[1], 1)
redis.call('INCRBY', KEYS[2], recipients)
redis.call('EXPIRE', KEYS[1], MINUTE_KEY_S)
redis.call('EXPIRE', KEYS[2], DAY_KEY_S)
return {1, 'ok', 0}
