/**
 * Scripts that run inside the store. `admit` decides and reserves; `sync` writes the knowledge of a
 * process: settled leases, totals, renewals, and everything again after an outage. Everything that
 * `sync` writes is a state and not a change, so repeated or late writes do no harm: a process's
 * totals only grow, and the larger value wins.
 *
 * The call passes the time: days and windows follow the gateway's clock.
 *
 * KEYS 1 leases, 2 amounts, 3 reserved (see keys.ts). Fields: `account|unit` is a total,
 * `account|unit|process` a process's part of it; `day|account|unit` is reserved, `account|n` counts
 * leases. Units: t tokens, m micro-dollars, q requests, u unpriced requests. A lease's amounts are
 * `day|t|m|q|account|...`.
 */

const PRELUDE = `
local UNITS = {'t', 'm', 'q', 'u'}

local function whole(number)
  return string.format('%.0f', number)
end

-- Adds what a lease has reserved to sums by field.
local function tally(sums, packed, sign)
  local parts = {}
  for part in string.gmatch(packed, '[^|]+') do parts[#parts + 1] = part end
  local function add(field, amount)
    sums[field] = (sums[field] or 0) + sign * amount
  end
  for i = 5, #parts do
    for unit = 1, 3 do
      local amount = tonumber(parts[unit + 1])
      if amount > 0 then add(parts[1] .. '|' .. parts[i] .. '|' .. UNITS[unit], amount) end
    end
    add(parts[i] .. '|n', 1)
  end
end

local function reserve(sums)
  local fields, set, del = {}, {}, {}
  for field in pairs(sums) do fields[#fields + 1] = field end
  if #fields == 0 then return end
  local held = redis.call('HMGET', KEYS[3], unpack(fields))
  for i, field in ipairs(fields) do
    local sum = tonumber(held[i] or 0) + sums[field]
    if sum > 0 then
      set[#set + 1] = field
      set[#set + 1] = whole(sum)
    else
      del[#del + 1] = field
    end
  end
  if #set > 0 then redis.call('HSET', KEYS[3], unpack(set)) end
  if #del > 0 then redis.call('HDEL', KEYS[3], unpack(del)) end
end

-- So many at once as the arguments of a call may be.
local CHUNK = 200

local function release(ids)
  for from = 1, #ids, CHUNK do
    local some = {unpack(ids, from, math.min(from + CHUNK - 1, #ids))}
    local sums = {}
    for _, packed in ipairs(redis.call('HMGET', KEYS[2], unpack(some))) do
      if packed then tally(sums, packed, -1) end
    end
    redis.call('HDEL', KEYS[2], unpack(some))
    redis.call('ZREM', KEYS[1], unpack(some))
    reserve(sums)
  end
end

-- A lease's latest amounts count: what it held before is given back.
local function hold(id, packed, expires, known)
  if known ~= packed then
    local sums = {}
    if known then tally(sums, known, -1) end
    tally(sums, packed, 1)
    redis.call('HSET', KEYS[2], id, packed)
    reserve(sums)
  end
  redis.call('ZADD', KEYS[1], expires, id)
end

local function reap(now)
  release(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now))
end

local function keep(ttl)
  for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], ttl) end
end
`;

/**
 * KEYS 4 usage of the day, 5... windows of the rate checks.
 *
 * ARGV 1 now, 2 id, 3 amounts to hold, 4 expiry, 5 ttl, 6 process, 7 amounts to hold instead where
 * no limit is near, 8... by check: kind, account, limit, and for a rate the window's ms and its
 * key's ttl, for a daily check the unit and the minimum that others and this process have used
 * (which a store that has lost data does not know); always six. An existing lease is raised: what
 * it holds does not count against it.
 *
 * Answers the index of the check that refuses or 0, used, reserved, ms to wait, how near a limit is
 * (0: far, and the amounts of ARGV 7 are held; 1: those of ARGV 3 are held; 2: those of ARGV 3 are
 * held, and the check would refuse if as much again were reserved), and for each daily check the
 * usage of others and the usage that the store has of this process.
 */
export const ADMIT = `${PRELUDE}
local now = tonumber(ARGV[1])
reap(now)
local totals, held = {}, {}
local function amounts(packed)
  local day, t, m, q = string.match(packed, '^([^|]+)|(%d+)|(%d+)|(%d+)')
  return {day = day, t = tonumber(t), m = tonumber(m), q = tonumber(q)}
end
local wanted, hoped = amounts(ARGV[3]), amounts(ARGV[7])
local day = wanted.day
local known = redis.call('HGET', KEYS[2], ARGV[2])
local mine = known and amounts(known) or {t = 0, m = 0, q = 0}
for at = 8, #ARGV, 6 do
  local kind, account = ARGV[at], ARGV[at + 1]
  if kind == 'd' then
    local field = account .. '|' .. ARGV[at + 3]
    totals[#totals + 1] = field
    totals[#totals + 1] = field .. '|' .. ARGV[6]
    held[#held + 1] = day .. '|' .. field
  elseif kind == 'c' then
    held[#held + 1] = account .. '|n'
  end
end
if #totals > 0 then totals = redis.call('HMGET', KEYS[4], unpack(totals)) end
if #held > 0 then held = redis.call('HMGET', KEYS[3], unpack(held)) end

local reply = {0, 0, 0, 0, 0}
local function refuse(at, used, reserved, wait)
  if reply[1] == 0 then reply[1], reply[2], reply[3], reply[4] = (at - 2) / 6, used, reserved, wait end
end
local function judge(at, used, reserved, asked, expected, limit)
  if used + reserved + asked > limit then refuse(at, used, reserved, 0) end
  local all = reserved + expected
  if used + 2 * all > limit then
    reply[5] = 2
  elseif used + 8 * all > limit then
    reply[5] = math.max(reply[5], 1)
  end
end
local nextTotal, nextHeld, nextWindow = 1, 1, 5
for at = 8, #ARGV, 6 do
  local kind, limit = ARGV[at], tonumber(ARGV[at + 2])
  if kind == 'd' then
    local own = tonumber(totals[nextTotal + 1] or 0)
    local others = math.max(tonumber(totals[nextTotal] or 0) - own, tonumber(ARGV[at + 4]))
    local used = others + math.max(own, tonumber(ARGV[at + 5]))
    local unit = ARGV[at + 3]
    local reserved = tonumber(held[nextHeld] or 0) - mine[unit]
    nextTotal, nextHeld = nextTotal + 2, nextHeld + 1
    reply[#reply + 1] = others
    reply[#reply + 1] = own
    judge(at, used, reserved, wanted[unit], hoped[unit], limit)
  elseif kind == 'c' then
    judge(at, 0, tonumber(held[nextHeld] or 0), 1, 1, limit)
    nextHeld = nextHeld + 1
  else
    local key, window = KEYS[nextWindow], tonumber(ARGV[at + 3])
    nextWindow = nextWindow + 1
    redis.call('ZREMRANGEBYSCORE', key, '-inf', whole(now - window))
    redis.call('ZREMRANGEBYSCORE', key, '(' .. whole(now + window), '+inf')
    local used = redis.call('ZCARD', key)
    if used >= limit then
      local leaver = redis.call('ZRANGE', key, used - limit, used - limit, 'WITHSCORES')[2]
      refuse(at, used, 0, leaver and math.max(1, tonumber(leaver) + window - now) or window)
    end
  end
end
if reply[1] > 0 then return reply end

hold(ARGV[2], reply[5] == 0 and ARGV[7] or ARGV[3], ARGV[4], known)
keep(ARGV[5])
nextWindow = 5
for at = 8, #ARGV, 6 do
  if ARGV[at] == 'r' then
    redis.call('ZADD', KEYS[nextWindow], ARGV[1], ARGV[2])
    redis.call('PEXPIRE', KEYS[nextWindow], ARGV[at + 4])
    nextWindow = nextWindow + 1
  end
end
return reply
`;

/**
 * KEYS 4... usage of days, and windows. ARGV 1 now, 2 expiry, 3 ttl, 4 ttl of usage, 5 process,
 * then sections, each after its number of entries: leases that ended (id); leases that live (id,
 * amounts); totals (key, account, t, m, q, u); admissions of windows (key, ttl, time, id);
 * admissions taken back (key, id); questions (key, account). Answers the usage of others, t m q u
 * for each entry of totals; then t m q u of all and the number of leases, for each question.
 */
export const SYNC = `${PRELUDE}
local at = 6
local function section()
  local entries = tonumber(ARGV[at])
  at = at + 1
  return entries
end
local function take()
  local argument = ARGV[at]
  at = at + 1
  return argument
end
local function key()
  return KEYS[tonumber(take())]
end
local reply = {}

local ended = {}
for at = 1, section() do ended[at] = take() end
release(ended)
reap(tonumber(ARGV[1]))
local lives = section()
for _ = 1, lives do
  local id = take()
  hold(id, take(), ARGV[2], redis.call('HGET', KEYS[2], id))
end
if lives > 0 then keep(ARGV[3]) end

for _ = 1, section() do
  local usage, account = key(), take()
  local fields = {}
  for _, unit in ipairs(UNITS) do
    fields[#fields + 1] = account .. '|' .. unit
    fields[#fields + 1] = account .. '|' .. unit .. '|' .. ARGV[5]
  end
  local stored, set = redis.call('HMGET', usage, unpack(fields)), {}
  for unit = 1, 4 do
    local total, own, says = tonumber(stored[2 * unit - 1] or 0), tonumber(stored[2 * unit] or 0), tonumber(take())
    reply[#reply + 1] = total - own
    if says > own then
      set[#set + 1] = fields[2 * unit - 1]
      set[#set + 1] = whole(total + says - own)
      set[#set + 1] = fields[2 * unit]
      set[#set + 1] = whole(says)
    end
  end
  if #set > 0 then
    redis.call('HSET', usage, unpack(set))
    redis.call('PEXPIRE', usage, ARGV[4])
  end
end

for _ = 1, section() do
  local window, ttl, time = key(), take(), take()
  redis.call('ZADD', window, time, take())
  redis.call('PEXPIRE', window, ttl)
end
for _ = 1, section() do
  local window = key()
  redis.call('ZREM', window, take())
end

for _ = 1, section() do
  local usage, account = key(), take()
  local fields = {}
  for _, unit in ipairs(UNITS) do fields[#fields + 1] = account .. '|' .. unit end
  for _, total in ipairs(redis.call('HMGET', usage, unpack(fields))) do reply[#reply + 1] = tonumber(total or 0) end
  reply[#reply + 1] = tonumber(redis.call('HGET', KEYS[3], account .. '|n') or 0)
end
return reply
`;

/**
 * Writes like the other scripts: a store that answers but cannot be written to (full, read-only, no
 * permission) is still unavailable.
 */
export const PROBE = `
return redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])
`;
