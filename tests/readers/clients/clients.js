// What Node sends: fetch, http, and as axios writes it. Argument: the address to send it to.
const http = require('http');
const qs = require('qs');
const querystring = require('querystring');

const to = process.argv[2];
const PLAIN = { username: 'alice', password: 'secret' };
const AWKWARD = { username: "Zoë O'Neil", password: 'pässword &=+%;"\n' };

function parts(fields) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  return form;
}

function request(path, type, body) {
  return new Promise((resolve) => {
    const req = http.request(to + path, { method: 'POST', headers: { 'Content-Type': type } }, (res) => {
      res.resume();
      res.on('end', resolve);
    });
    req.end(body);
  });
}

async function main() {
  const post = (path, body, headers = {}) => fetch(to + path, { method: 'POST', body, headers }).then((res) => res.text());
  await post('/fetch/plain', new URLSearchParams(PLAIN));
  await post('/fetch/form', new URLSearchParams(AWKWARD));
  await post('/fetch/multipart', parts(AWKWARD));
  const file = parts(AWKWARD);
  file.append('photo', new Blob(['a file'], { type: 'image/png' }), 'photo.png');
  await post('/fetch/file', file);
  await post('/fetch/json', JSON.stringify(AWKWARD), { 'Content-Type': 'application/json' });
  await post('/fetch/json-text', JSON.stringify({ ...AWKWARD, password: 'secret' }));
  await post('/fetch/query?' + new URLSearchParams(AWKWARD));
  await request('/node-http/plain', 'application/x-www-form-urlencoded', querystring.stringify(PLAIN));
  await request('/node-http/form', 'application/x-www-form-urlencoded', querystring.stringify(AWKWARD));
  await request('/node-http/json', 'application/json', JSON.stringify(AWKWARD));
  await request('/axios-like/form', 'application/x-www-form-urlencoded;charset=utf-8', qs.stringify(AWKWARD));
  await request('/axios-like/form-rfc1738', 'application/x-www-form-urlencoded', qs.stringify(AWKWARD, { format: 'RFC1738' }));
  await request('/axios-like/json', 'application/json;charset=utf-8', JSON.stringify(AWKWARD));
}

main();
