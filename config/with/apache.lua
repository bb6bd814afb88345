-- Asks portcullis whether a request may pass: the hook `ask` of apache.conf. Any answer but 200 goes to the client, and the
-- request is not forwarded.

local http = require("socket.http")
local ltn12 = require("ltn12")

local portcullis = "http://127.0.0.1:9191/auth"

-- How long Apache waits for the answer, in seconds: longer than any `delay` and `tarpit`, which hold it.
local patience = 60

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

-- What a client may not say of itself: headers by which some applications believe another client, host, scheme or path than
-- Apache sees.
local forgeable = {
    ["x-real-ip"] = true,
    ["x-real-port"] = true,
    ["x-client-ip"] = true,
    ["x-clientip"] = true,
    ["x-client-addr"] = true,
    ["x-cluster-client-ip"] = true,
    ["x-true-client-ip"] = true,
    ["x-true-ip"] = true,
    ["x-originating-ip"] = true,
    ["x-proxyuser-ip"] = true,
    ["x-remote-ip"] = true,
    ["x-remote-addr"] = true,
    ["x-remote-host"] = true,
    ["x-coming-from"] = true,
    ["x-host"] = true,
    ["x-host-override"] = true,
    ["x-http-host-override"] = true,
    ["x-amzn-remapped-host"] = true,
    ["x-request-id"] = true,
    ["x-scheme"] = true,
    ["x-url-scheme"] = true,
    ["x-ssl"] = true,
    ["x-https"] = true,
    ["x-override-url"] = true,
    ["x-http-destinationurl"] = true,
    ["x-waws-unencoded-url"] = true,
    ["x-script-name"] = true,
    ["x-path-info"] = true,
    ["x-azure-clientip"] = true,
    ["x-azure-socketip"] = true,
    ["x-appengine-user-ip"] = true,
    ["x-appengine-remote-addr"] = true,
    ["x-akamai-client-ip"] = true,
    ["x-nf-client-connection-ip"] = true,
    ["x-sucuri-clientip"] = true,
    ["x-vercel-forwarded-for"] = true,
    ["x-vercel-proxied-for"] = true,
    ["proxy"] = true,
    ["forwarded"] = true,
    ["forwarded-for"] = true,
    ["forwarded-for-ip"] = true,
    ["forwarded-proto"] = true,
    ["forwarded-host"] = true,
    ["http-x-forwarded-for"] = true,
    ["front-end-https"] = true,
    ["fastly-ssl"] = true,
    ["wl-proxy-ssl"] = true,
    ["true-client-ip"] = true,
    ["fastly-client-ip"] = true,
    ["fly-client-ip"] = true,
    ["incap-client-ip"] = true,
    ["akamai-client-ip"] = true,
    ["proxy-client-ip"] = true,
    ["wl-proxy-client-ip"] = true,
    ["http-client-ip"] = true,
    ["client-ip"] = true,
    ["cf-connecting-ip"] = true,
    ["cf-connecting-ipv6"] = true,
    ["cf-pseudo-ipv4"] = true,
    ["cloudfront-viewer-address"] = true,
    ["cloudfront-forwarded-proto"] = true,
    ["do-connecting-ip"] = true,
    ["ali-cdn-real-ip"] = true,
    ["cdn-src-ip"] = true,
    ["cdn-real-ip"] = true,
    ["remote-addr"] = true,
    ["remote-ip"] = true,
}
local forgeable_prefixes = { "x-forward", "x-proxied", "x-original-", "x-rewrite-", "x-envoy-" }

-- Many applications take an underscore for a hyphen.
local function is_forgeable(name)
    if name:find("_", 1, true) or forgeable[name] then
        return true
    end
    for _, prefix in ipairs(forgeable_prefixes) do
        if name:sub(1, #prefix) == prefix then
            return true
        end
    end
    return false
end

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
        if is_forgeable(name:lower()) then
            r.headers_in[name] = nil
        elseif not hop[name:lower()] then
            headers[name:lower()] = value
        end
    end
    -- WebSockets go through, and no other upgrade: behind one to HTTP/2, portcullis would not be asked about further requests.
    local upgrade = r.headers_in["Upgrade"]
    if upgrade then
        r.headers_in["Upgrade"] = upgrade:lower():find("websocket", 1, true) and "websocket" or nil
    end
    local scheme = r.is_https and "https" or "http"
    r.headers_in["X-Forwarded-Proto"] = scheme
    headers["x-forwarded-method"] = r.method
    headers["x-forwarded-proto"] = scheme
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
