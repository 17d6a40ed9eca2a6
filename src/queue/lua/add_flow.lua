--- Add a tree of jobs: leaves run first, a job with children waits for them. The producer's calls are numbered.
--- keys: base
--- args: producer, number, nodes (workflow, id, spec, data, parent, policy, children)*
---   the root comes first, every node after its parent; parent: its index from 1 (0: none); children: how many
--- returns: an empty text, or nonce, state and id of a job that has the root's id
--- @include add_child
--- @include add_job
--- @include key_of
--- @include read_clock
--- @include read_receipt
--- @include read_spec
--- @include require_memory
--- @include write_receipt
requireMemory(KEYS[1])
local base, producer, number = KEYS[1], ARGV[1], ARGV[2]
local receipt = readReceipt(base, producer, number)
if receipt then return receipt[1] end
local now, nodes, answer = readClock(), {}, ''
for i = 3, #ARGV, 7 do
  local node = { ARGV[i], ARGV[i + 1], readSpec(ARGV[i + 2]).run, 0 }
  local above, leaf = nodes[tonumber(ARGV[i + 4])], ARGV[i + 6] == '0'
  if above then
    local path = '//' .. above[4]
    above[4] = above[4] + 1
    addChild(base, above, '', path, 0, ARGV[i + 5], node[1], node[2], ARGV[i + 2], ARGV[i + 3],
      leaf and 'now' or 'parked', now)
  else
    answer = addJob(base, node[1], node[2], ARGV[i + 2], ARGV[i + 3], leaf and '' or 'parked', 'live', '', '', now)
    if answer ~= '' then break end
  end
  if not leaf then redis.call('HSET', keyOf(base, node[1], 'j', node[2]), 'kids', '1') end
  nodes[#nodes + 1] = node
end
writeReceipt(base, producer, number, { answer })
return answer
