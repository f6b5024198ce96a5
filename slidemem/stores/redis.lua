-- What a store asks of Redis: each procedure of served.py as one function of this script, so each call happens whole.
--
-- Keys of a session: H its head (a hash), M messages by seq, I who said what under which id, D what messages are found
-- by, P where terms occur, B closed branches, S segments, N pins. Of all of them: ALL lists those that hold anything.
-- Texts of hosts are JSON literals of ASCII characters (see wire.py), so a line feed parts them from each other.
-- Sorted sets whose scores are all 0 are in the order of their members, and found by a range of those in the time of a
-- logarithm.

local H, M, I, D, P, B, S, N, ALL, COUNT = unpack(KEYS)
local procedure, digest = ARGV[1], ARGV[2]
local a = cjson.decode(ARGV[3])
local PREFIX = ARGV[4]
local DAY = 86400000
local call = redis.call

local function there(value) return value ~= nil and value ~= cjson.null end
local function whole(number) return string.format('%.0f', number) end
local function place(seq) return string.format('%010.0f', math.max(0, math.min(seq, 9999999999))) end

-- ------------------------------------------------------------------ the session's head

local FIELDS = {
    'epoch', 'revision', 'boundary', 'segments', 'next_seq', 'live_tokens', 'live_turns', 'anchor_tokens',
    'overhead_tokens', 'record_anchor', 'record_overhead', 'n', 'pinned',
    'counter', 'anchor_counter', 'holder', 'until', 'metadata', 'id', 'owner'
}
local NUMBERS = 13  -- so many of them are numbers

local function head()
    local found, s = call('HMGET', H, unpack(FIELDS)), {}
    for at, field in ipairs(FIELDS) do
        if at <= NUMBERS then s[field] = tonumber(found[at] or '0') else s[field] = found[at] or nil end
    end
    s.counter, s.metadata = s.counter or '""', s.metadata or '[]'
    return s
end

local function begun()
    local s = head()
    if s.n == 0 then s.n, s.epoch = call('INCR', COUNT), a.epoch end
    s.id = a.id
    return s
end

local function owned(owner) return PREFIX .. 'user:' .. owner end

local function disown(s)
    if s.owner then call('ZREM', owned(s.owner), digest) end
end

local function save(s)
    local set, gone = {}, {}
    for at, field in ipairs(FIELDS) do
        local value = s[field]
        if at <= NUMBERS then value = whole(value) end
        if value then
            set[#set + 1] = field
            set[#set + 1] = value
        else
            gone[#gone + 1] = field
        end
    end
    call('HSET', H, unpack(set))
    if #gone > 0 then call('HDEL', H, unpack(gone)) end
    local holds = s.segments > 0 or s.metadata ~= '[]'
        or call('EXISTS', M) == 1 or call('EXISTS', B) == 1 or call('EXISTS', N) == 1
    if holds then call('ZADD', ALL, whole(s.n), digest) else call('ZREM', ALL, digest) end
    if s.owner then
        call('ZADD', owned(s.owner), whole(s.n), digest)
        if there(a.ttl) then call('PEXPIRE', owned(s.owner), whole(math.ceil(a.ttl * 1000))) end
    end
    for at = 1, 8 do
        if there(a.ttl) then call('PEXPIRE', KEYS[at], whole(math.ceil(a.ttl * 1000)))
        else call('PERSIST', KEYS[at]) end
    end
end

local function tell(s)
    if there(a.metadata) then s.metadata = a.metadata end
    if a.owner and s.owner ~= a.owner then
        disown(s)
        s.owner = a.owner
    end
end

local function totals(s)
    return '[' .. table.concat({
        whole(s.next_seq), whole(s.live_tokens), whole(s.live_turns), whole(s.anchor_tokens),
        whole(s.overhead_tokens), s.counter
    }, ',') .. ']'
end

-- ------------------------------------------------------------------ messages

local function at(key, fields, each)  -- what stands in a hash at some fields, a thousand at a time
    for first = 1, #fields, 1000 do
        local last = math.min(first + 999, #fields)
        local found = call('HMGET', key, unpack(fields, first, last))
        for offset = 1, last - first + 1 do
            if found[offset] then each(found[offset], fields[first + offset - 1]) end
        end
    end
end

local function span(first, last)
    local seqs = {}
    for seq = math.max(0, first), last - 1 do seqs[#seqs + 1] = whole(seq) end
    return seqs
end

-- A message as it is kept: its columns but for seq, tokens and counter first since those change, its body last.
local function row(e)
    return table.concat({ whole(e[7]), e[8], e[5], e[4], e[6], there(e[2]) and e[2] or '', e[3], e[9] }, '\n')
end

local function columns(value)
    return string.match(value, '^(.-)\n(.-)\n(.-)\n(.-)\n(.-)\n(.-)\n(.-)\n(.*)$')
end

local function told(seq, value)
    local tokens, counter, _, _, _, _, _, body = columns(value)
    return '[' .. seq .. ',' .. tokens .. ',' .. counter .. ',' .. body .. ']'
end

local function listed(parts) return '[' .. table.concat(parts, ',') .. ']' end

local function entries(seqs)
    local parts = {}
    at(M, seqs, function(value, seq) parts[#parts + 1] = told(seq, value) end)
    return listed(parts)
end

local function posting(term) return #term .. ':' .. term end

local function put(seq, e)
    call('HSET', M, whole(seq), row(e))
    if there(e[2]) then call('ZADD', I, 0, e[2] .. place(seq) .. e[4]) end
    local upto, terms, counts = e[11], e[12], e[13]
    if seq > 0 then upto = upto + tonumber(string.match(call('HGET', D, whole(seq - 1)) or '0', '^%d+')) end
    call('HSET', D, whole(seq), whole(upto) .. '\n' .. e[10] .. '\n' .. cjson.encode(terms))
    for first = 1, #terms, 1000 do
        local members = {}
        for i = first, math.min(first + 999, #terms) do
            members[#members + 1] = 0
            members[#members + 1] = posting(terms[i]) .. place(seq) .. whole(counts[i])
        end
        call('ZADD', P, unpack(members))
    end
end

-- Whether the latest message with this one's id says what it says.
local function is_said(e)
    if not there(e[2]) then return false end
    local latest = call('ZREVRANGEBYLEX', I, '(' .. e[2] .. '~', '[' .. e[2], 'LIMIT', 0, 1)[1]
    return latest ~= nil and string.sub(latest, -#e[4]) == e[4]
end

local function add(s, given)
    local last
    for _, e in ipairs(given) do
        if not is_said(e) then
            put(s.next_seq, e)
            s.next_seq = s.next_seq + 1
            s.live_tokens = s.live_tokens + e[7]
            if e[5] == 'user' then s.live_turns = s.live_turns + 1 end
            last = e[8]
        end
    end
    if last and s.counter == '""' then s.counter = last end
end

-- Take the messages from a place on out of the conversation, as the newest branch.
local function close(s, keep)
    local closed, seqs = {}, span(keep, call('HLEN', M))
    at(M, seqs, function(value, seq)
        local _, _, _, said, _, host = columns(value)
        closed[#closed + 1] = told(seq, value)
        if host ~= '' then call('ZREM', I, host .. place(seq) .. said) end
    end)
    at(D, seqs, function(value, seq)
        for _, term in ipairs(cjson.decode(string.match(value, '\n([^\n]*)$'))) do
            local first = posting(term) .. place(seq)
            call('ZREMRANGEBYLEX', P, '[' .. first, '(' .. first .. '~')
        end
    end)
    for _, seq in ipairs(seqs) do call('HDEL', M, seq); call('HDEL', D, seq) end
    if #closed > 0 then call('RPUSH', B, '[' .. whole(s.revision) .. ',' .. listed(closed) .. ']') end
    s.epoch = s.epoch + 1
end

-- The sums of what is live; those that were counted by several counters say so.
local function sum(s)
    local counter, several = s.anchor_counter, false
    local count, tokens, turns = 0, 0, 0
    at(M, span(s.boundary, call('HLEN', M)), function(value)
        local its, by, role = columns(value)
        count, tokens = count + 1, tokens + tonumber(its)
        if role == 'user' then turns = turns + 1 end
        several = several or (counter ~= nil and counter ~= by)
        counter = by
    end)
    s.next_seq, s.live_tokens, s.live_turns = s.boundary + count, tokens, turns
    s.anchor_tokens, s.overhead_tokens = s.record_anchor, s.record_overhead
    s.counter = several and '"several"' or counter or s.counter
end

-- ------------------------------------------------------------------ records

local function ordered(key)  -- what a hash holds under names, in the order in which the names came
    local found, kept = call('HVALS', key), {}
    for _, value in ipairs(found) do
        local order, json = string.match(value, '^(%d+)\n(.*)$')
        kept[#kept + 1] = { tonumber(order), json }
    end
    table.sort(kept, function(one, other) return one[1] < other[1] end)
    local parts = {}
    for _, one in ipairs(kept) do parts[#parts + 1] = one[2] end
    return listed(parts)
end

local function keep(s, key, given)
    for _, one in ipairs(given) do
        local before = call('HGET', key, one[1])
        local order = before and string.match(before, '^%d+')
        if not order then
            s.pinned = s.pinned + 1
            order = whole(s.pinned)
        end
        call('HSET', key, one[1], order .. '\n' .. one[2])
    end
end

local function record(s, r)
    call('HSET', H, 'record', r.record)
    s.revision, s.boundary, s.segments = r.revision, r.boundary, r.segments
    s.record_anchor, s.record_overhead = r.anchor_tokens, r.overhead_tokens
    s.anchor_counter = there(r.anchor_counter) and r.anchor_counter or nil
    s.holder, s.until_, s['until'], s.epoch = nil, nil, nil, s.epoch + 1
end

local function recorded() return call('HGET', H, 'record') or 'null' end

local function empty()
    call('DEL', M, I, D, P, B, S, N)
    call('HDEL', H, 'record')
end

local function moved_on(s) return s.revision ~= a.expected[1] or s.next_seq ~= a.expected[2] end

-- ------------------------------------------------------------------ what is asked

local ask = {}

function ask.append()
    local s = begun()
    tell(s)
    add(s, a.entries)
    save(s)
    return totals(s)
end

function ask.read()
    local last = call('HLEN', M)
    if there(a['end']) then last = math.min(last, a['end']) end
    return entries(span(a.start, last))
end

function ask.pick()
    local seqs = {}
    for _, seq in ipairs(a.seqs) do seqs[#seqs + 1] = whole(seq) end
    return entries(seqs)
end

function ask.keys()
    local parts = {}
    at(M, span(0, call('HLEN', M)), function(value)
        local _, _, role, said, shown, _, id = columns(value)
        parts[#parts + 1] = '["' .. said .. '",' .. id .. ',"' .. role .. '","' .. shown .. '"]'
    end)
    return listed(parts)
end

function ask.matching()
    local messages, length = math.max(0, math.min(a.before, call('HLEN', D))), 0
    if messages > 0 then length = tonumber(string.match(call('HGET', D, whole(messages - 1)), '^%d+')) end
    local before, limits, order, left = place(a.before), {}, {}, a.most
    local frequency = {}
    for i, term in ipairs(a.terms) do
        frequency[i] = call('ZLEXCOUNT', P, '[' .. posting(term), '(' .. posting(term) .. before)
        order[i] = i
    end
    table.sort(order, function(one, other)
        if frequency[one] ~= frequency[other] then return frequency[one] < frequency[other] end
        return one < other
    end)
    for _, i in ipairs(order) do
        limits[i] = math.min(frequency[i], left)
        left = left - limits[i]
    end
    local found = {}
    for i, term in ipairs(a.terms) do
        local newest, first = {}, #posting(term)
        if limits[i] > 0 then
            newest = call('ZREVRANGEBYLEX', P, '(' .. posting(term) .. before, '[' .. posting(term),
                'LIMIT', 0, whole(limits[i]))
        end
        local parts = {}
        for back = #newest, 1, -1 do
            local one = string.sub(newest[back], first + 1)
            parts[#parts + 1] = '[' .. whole(tonumber(string.sub(one, 1, 10))) .. ',' .. string.sub(one, 11) .. ']'
        end
        found[i] = '[' .. whole(frequency[i]) .. ',' .. listed(parts) .. ']'
    end
    return '[' .. whole(messages) .. ',' .. whole(length) .. ',' .. listed(found) .. ']'
end

function ask.documents()
    local seqs, parts = {}, {}
    for _, seq in ipairs(a.seqs) do seqs[#seqs + 1] = whole(seq) end
    at(D, seqs, function(value, seq)
        parts[#parts + 1] = '[' .. seq .. ',' .. string.match(value, '\n(.-)\n') .. ']'
    end)
    return listed(parts)
end

function ask.cut()
    local s = begun()
    close(s, a.keep)
    sum(s)
    save(s)
    return 'true'
end

function ask.branches() return listed(call('LRANGE', B, 0, -1)) end

function ask.held()
    local s = head()
    return '[' .. whole(s.revision) .. ',' .. recorded() .. ',' .. ordered(N) .. ',' .. s.metadata .. ']'
end

function ask.describe()
    local s = begun()
    tell(s)
    save(s)
    return 'true'
end

function ask.commit()
    if head().revision ~= a.expected then return 'false' end
    local s = begun()
    local tokens, turns = 0, 0
    at(M, span(a.start, a['end']), function(value)
        local its, _, role = columns(value)
        tokens = tokens + tonumber(its)
        if role == 'user' then turns = turns + 1 end
    end)
    record(s, a.record)
    s.live_tokens, s.live_turns = s.live_tokens - tokens, s.live_turns - turns
    s.anchor_tokens, s.overhead_tokens = s.record_anchor, s.record_overhead
    keep(s, S, a.segments)
    keep(s, N, a.pins)
    save(s)
    return 'true'
end

function ask.segment()
    local value = call('HGET', S, a.name)
    return value and string.match(value, '\n(.*)$') or 'null'
end

function ask.pin()
    local s = begun()
    tell(s)
    keep(s, N, a.pins)
    save(s)
    return 'true'
end

function ask.unpin()
    if call('HDEL', N, unpack(a.names)) == 0 then return 'false' end
    save(head())
    return 'true'
end

function ask.claim()
    local s = head()
    local lasts = tonumber(s['until'])
    local taken = s.holder and s.holder ~= a.holder and a.now < lasts and lasts <= a.now + 2 * (a['until'] - a.now)
    if s.revision ~= a.expected or taken then return 'false' end
    s = begun()
    s.holder, s['until'] = a.holder, string.format('%.17g', a['until'])
    save(s)
    return 'true'
end

function ask.release()
    if call('HGET', H, 'holder') == a.holder then call('HDEL', H, 'holder', 'until') end
    return 'true'
end

-- Of a cleared session the head is left for a day, with its revision and nothing else that tells of it.
function ask.clear()
    local s = begun()
    local left = { n = s.n, epoch = s.epoch + 1, revision = s.revision + 1, counter = '""', metadata = '[]' }
    for i = 1, NUMBERS do left[FIELDS[i]] = left[FIELDS[i]] or 0 end
    empty()
    disown(s)
    save(left)
    call('PEXPIRE', H, DAY)
    return 'true'
end

function ask.snapshot()
    local s, first, kept = head(), nil, 'null'
    if s.n > 0 and s.epoch == a.epoch then first = a.known else first, kept = s.boundary, recorded() end
    return listed({
        whole(s.n > 0 and s.epoch or 0), whole(s.revision), whole(s.boundary), totals(s), s.metadata, kept,
        entries(span(first, call('HLEN', M))), ordered(N),
        a.beside and ordered(PREFIX .. a.beside .. ':pins') or '[]'
    })
end

function ask.recount()
    if head().revision ~= a.expected then return 'false' end
    local s = begun()
    for _, one in ipairs(a.tokens) do
        local seq = whole(one[1])
        local value = call('HGET', M, seq)
        if value then
            call('HSET', M, seq, whole(one[2]) .. '\n' .. a.counter .. '\n' .. string.match(value, '^.-\n.-\n(.*)$'))
        end
    end
    local tokens = 0
    at(M, span(s.boundary, call('HLEN', M)), function(value) tokens = tokens + tonumber((columns(value))) end)
    s.live_tokens, s.anchor_tokens, s.overhead_tokens = tokens, a.anchor_tokens, a.overhead_tokens
    s.counter, s.epoch = a.counter, s.epoch + 1
    save(s)
    return 'true'
end

function ask.rewrite()
    if moved_on(head()) then return 'null' end
    local s = begun()
    if there(a.record) then
        close(s, a.keep)
        record(s, a.record)
        sum(s)
    end
    for _, name in ipairs(a.unpinned) do call('HDEL', N, name) end
    tell(s)
    add(s, a.entries)
    save(s)
    return totals(s)
end

function ask.whole()
    local s = head()
    return listed({
        whole(s.revision), recorded(), entries(span(0, call('HLEN', M))), ask.branches(), ordered(S), ordered(N),
        s.metadata
    })
end

function ask.restore()
    if moved_on(head()) then return 'false' end
    local s = begun()
    empty()
    tell(s)
    for _, branch in ipairs(a.branches) do
        local parts = {}
        for _, e in ipairs(branch[2]) do parts[#parts + 1] = told(whole(e[1]), row(e)) end
        call('RPUSH', B, '[' .. whole(branch[1]) .. ',' .. listed(parts) .. ']')
    end
    for seq, e in ipairs(a.entries) do put(seq - 1, e) end
    s.counter = a.counter
    record(s, a.record)
    sum(s)
    keep(s, S, a.segments)
    keep(s, N, a.pins)
    save(s)
    return 'true'
end

function ask.sessions()
    local parts = {}
    for _, one in ipairs(call('ZRANGE', a.owner and owned(a.owner) or ALL, 0, -1)) do
        local id = call('HGET', PREFIX .. one .. ':head', 'id')
        if id then parts[#parts + 1] = id end  -- one whose time was over is listed no more
    end
    return listed(parts)
end

function ask.loaded()
    local parts = {}
    for _, one in ipairs(call('ZRANGE', ALL, 0, -1)) do
        local id, live, anchor, overhead, turns = unpack(call('HMGET', PREFIX .. one .. ':head',
            'id', 'live_tokens', 'anchor_tokens', 'overhead_tokens', 'live_turns'))
        local much = id and tonumber(live) + tonumber(anchor) + tonumber(overhead) >= a.tokens
        if id and (much or there(a.turns) and tonumber(turns) > a.turns) then parts[#parts + 1] = id end
    end
    return listed(parts)
end

return ask[procedure]()
