--- @include push

--- Push the ends of completed jobs, which stand in ARGV from `first` to `last` (id, result, nonce), to the processes that
--- wait for them. `told`: by these, where each job begins.
local function sayEnds(base, workflow, told, first, last)
  for waiters, places in pairs(told) do
    local said
    if 3 * #places == last - first + 1 then
      said = { 'completed', workflow, unpack(ARGV, first, last) }
    else
      said = { 'completed', workflow }
      for k, i in ipairs(places) do
        said[3 * k], said[3 * k + 1], said[3 * k + 2] = ARGV[i], ARGV[i + 1], ARGV[i + 2]
      end
    end
    push(base, waiters, said)
  end
end
