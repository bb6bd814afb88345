-- Asks portcullis whether a request may pass: the hook `ask` of apache.conf. Any answer but 200 goes to the client, and the
-- request is not forwarded.

local http = require("socket.http")
local ltn12 = require("ltn12")

local portcullis = "http://127.0.0.1:9191/auth"

-- Longer than any `delay` and `tarpit`, in seconds.
local patience = 120

-- Headers between Apache and the client, and of the framing of the question, which has its own.
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

local function deny(r, status, headers, body)
    for name, value in pairs(headers) do
        if name == "content-type" then
            r.content_type = value
        elseif not hop[name] then
            r.err_headers_out[name] = value
        end
    end
    r.status = status
    r:write(body)
    return apache2.DONE
end

function ask(r)
    local headers = {}
    for name, value in pairs(r:headers_in_table()) do
        if name:find("_", 1, true) then
            r.headers_in[name] = nil
        elseif not hop[name:lower()] then
            headers[name:lower()] = value
        end
    end
    headers["x-forwarded-method"] = r.method
    headers["x-forwarded-proto"] = r.is_https and "https" or "http"
    headers["x-forwarded-host"] = r.headers_in["Host"]
    headers["x-forwarded-uri"] = r.unparsed_uri
    headers["x-forwarded-for"] = r.useragent_ip
    local page = {}
    http.TIMEOUT = patience
    local answered, status, told = http.request({
        url = portcullis,
        headers = headers,
        redirect = false,
        sink = ltn12.sink.table(page),
    })
    if not answered or status < 200 or (status > 200 and status < 300) then
        r:err("portcullis does not answer at " .. portcullis .. ": " .. tostring(status))
        return deny(r, 503, { ["cache-control"] = "no-store" }, "")
    end
    if status > 200 then
        return deny(r, status, told, table.concat(page))
    end
    r.headers_in["X-Request-ID"] = told["x-request-id"]
    for _, name in ipairs({ "RateLimit", "RateLimit-Policy" }) do
        if told[name:lower()] then
            r.err_headers_out[name] = told[name:lower()]
        end
    end
    return apache2.DECLINED
end
