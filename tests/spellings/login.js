// An application that knows its login by the path of the target, which it parses as a URL.
const http = require("node:http");

function path(target) {
  try {
    return decodeURIComponent(new URL(target, "http://localhost").pathname);
  } catch {
    return "";
  }
}

const [host, port] = process.argv.slice(2);
http.createServer((request, response) => {
  response.end(/^\/login\/?$/.test(path(request.url)) ? "THE LOGIN of node" : "another page");
}).listen(port, host);
