//! What runs inside the server.
//!
//! A record whose key holds something else than ours do is damaged: whoever meets it moves it under a name of its own,
//! where it hides no other (requirement K-2).

/// Keys: record, index, last version. Arguments: expected version (empty: absent), `put` or `del`, value, life in
/// milliseconds (empty: for ever), name, channel of the feed, prefix of damaged records. Whoever may not publish writes
/// all the same.
pub(crate) const SWAP: &str = r"
local record = redis.pcall('HMGET', KEYS[1], 'v', 'd')
local version = record[1]
if record.err or (version or record[2]) and not (record[2] and string.match(version or '', '^%d+$')) then
    redis.call('RENAME', KEYS[1], ARGV[7] .. ARGV[5])
    redis.call('ZREM', KEYS[2], ARGV[5])
    return {'damaged'}
end
local met
if ARGV[1] == '' then met = not version else met = version == ARGV[1] end
if not met then
    if not version then return {'lost'} end
    return {'lost', version, record[2]}
end
if ARGV[2] == 'del' then
    redis.call('ZREM', KEYS[2], ARGV[5])
    if redis.call('DEL', KEYS[1]) == 1 then redis.pcall('PUBLISH', ARGV[6], ARGV[5]) end
    return {'done'}
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local last = tonumber(redis.call('GET', KEYS[3]) or '0')
local next = string.format('%.0f', math.max(last + 1, now))
redis.call('SET', KEYS[3], next)
redis.call('HSET', KEYS[1], 'v', next, 'd', ARGV[3])
if ARGV[4] == '' then
    redis.call('PERSIST', KEYS[1])
else
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
redis.call('ZADD', KEYS[2], 0, ARGV[5])
redis.pcall('PUBLISH', ARGV[6], ARGV[5])
return {'done', next}
";

/// Key: index. Arguments: lower bound, upper bound, limit, prefix of record keys, prefix of damaged ones. Gives back where
/// it stopped (empty at the end), then name, version and value of each record; of a damaged one, which is moved away, the
/// version is empty. Names whose record has lapsed leave the index.
///
/// One call looks at a few hundred names at most: a script keeps the whole server waiting.
pub(crate) const SCAN: &str = r"
local found = {''}
local limit = tonumber(ARGV[3])
local names = redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], ARGV[2], 'LIMIT', 0, 256)
for i, name in ipairs(names) do
    local record = redis.pcall('HMGET', ARGV[4] .. name, 'v', 'd')
    if record.err or (record[1] or record[2]) and not (record[2] and string.match(record[1] or '', '^%d+$')) then
        redis.call('RENAME', ARGV[4] .. name, ARGV[5] .. name)
        redis.call('ZREM', KEYS[1], name)
        found[#found + 1] = name
        found[#found + 1] = ''
        found[#found + 1] = ''
    elseif record[1] then
        found[#found + 1] = name
        found[#found + 1] = record[1]
        found[#found + 1] = record[2]
    else
        redis.call('ZREM', KEYS[1], name)
    end
    if i == 256 or #found > limit * 3 then
        found[1] = name
        return found
    end
end
return found
";

/// Most records asked for by one call of [`SCAN`].
pub(crate) const PAGE: usize = 128;

#[cfg(test)]
mod tests {
    // spec: K-1
    #[test]
    fn versions_fit_the_numbers_of_lua_until_the_year_2255() {
        let microseconds_in_2255 = 9_000_000_000_u64 * 1_000_000;
        assert!(microseconds_in_2255 < 1 << 53);
    }
}
