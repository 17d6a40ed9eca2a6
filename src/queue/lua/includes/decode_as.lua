--- A text's JSON value, if the text begins so: an empty list and an empty table are the same to Lua.
local function decodeAs(opening, text)
  if string.sub(text, 1, 1) ~= opening then return nil end
  local readable, value = pcall(cjson.decode, text)
  return readable and value or nil
end
