-- Asks portcullis whether a request may pass: the action `http-request lua.portcullis ADDRESS` of haproxy.cfg. Any answer
-- but 200 goes to the client, and the request is not forwarded.

-- How long HAProxy waits for an answer, in milliseconds: longer than any `delay` and `tarpit`, which hold it. HAProxy asks four
-- times before it gives up, so a client waits four times as long for a portcullis that hangs. HAProxy 2.8 and later ask once with
-- `httpclient.retries 0` in `global`.
local patience = 30000

-- Headers between HAProxy and the client, and of the framing of the question, which has its own.
local hop = {
    ["connection"] = true,
    ["content-length"] = true,
    ["expect"] = true,
    ["host"] = true,
    ["keep-alive"] = true,
    ["proxy-connection"] = true,
    ["te"] = true,
    ["trailer"] = true,
    ["transfer-encoding"] = true,
    ["upgrade"] = true,
}

-- Headers by name, each with a list of its values. HAProxy counts values from 0.
local function headers_of(found)
    local headers = {}
    for name, values in pairs(found) do
        if not hop[name] then
            headers[name] = {}
            for position = 0, #values do
                headers[name][position + 1] = values[position]
            end
        end
    end
    return headers
end

core.register_action("portcullis", { "http-req" }, function(txn, address)
    local headers = headers_of(txn.http:req_get_headers())
    headers["x-forwarded-method"] = { txn.sf:method() }
    headers["x-forwarded-host"] = { txn.sf:req_fhdr("host") }
    headers["x-forwarded-uri"] = { txn.sf:pathq() }
    -- Only a whole body: of a part, portcullis would not know that it is one.
    local body = txn.f:req_body()
    if body == nil or #body == 0 or tonumber(txn.sf:req_fhdr("content-length")) ~= #body then
        body = nil
    end
    local question = { url = address .. "/auth", headers = headers, body = body, timeout = patience }
    local answered, answer = pcall(function() return core.httpclient():post(question) end)
    if answered and answer and answer.status == 200 then
        local told = headers_of(answer.headers)
        if told["x-request-id"] then
            txn.http:req_set_header("x-request-id", told["x-request-id"][1])
        end
        for _, name in ipairs({ "ratelimit", "ratelimit-policy" }) do
            if told[name] then
                txn:set_var("txn.portcullis_" .. name:gsub("-", "_"), told[name][1])
            end
        end
        return
    end
    local reply = txn:reply()
    if answered and answer and answer.status and answer.status >= 300 then
        reply:set_status(answer.status)
        for name, values in pairs(headers_of(answer.headers)) do
            for _, value in ipairs(values) do
                reply:add_header(name, value)
            end
        end
        reply:set_body(answer.body or "")
    else
        reply:set_status(503)
        reply:add_header("cache-control", "no-store")
    end
    txn:done(reply)
end, 1)
