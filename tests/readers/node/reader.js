// What Node's parsers of bodies read: those of Express, qs, busboy, and of fetch. Arguments: host and port.
const bodyParser = require('body-parser');
const busboy = require('busboy');
const cookie = require('cookie');
const http = require('http');
const qs = require('qs');
const querystring = require('querystring');
const { Readable } = require('stream');

const NAMES = ['username', 'user_name', 'user[name]'];

function leaves(found, reader, source, name, value) {
  if (typeof value === 'string' || typeof value === 'number') {
    found.push([reader, source, name, String(value)]);
  } else if (value && typeof value === 'object') {
    for (const element of Object.values(value)) leaves(found, reader, source, name, element);
  }
}

function names(found, reader, source, read) {
  if (!read || typeof read !== 'object') return;
  for (const name of NAMES) leaves(found, reader, source, name, read[name]);
  if (read.user && typeof read.user === 'object') {
    leaves(found, reader, source, source === 'json' ? 'user.name' : 'user[name]', read.user.name);
  }
}

function stream(req, body) {
  const again = Readable.from(body.length ? [body] : []);
  again.headers = { ...req.headers, 'content-length': String(body.length) };
  delete again.headers['transfer-encoding'];
  again.method = req.method;
  again.url = req.url;
  return again;
}

const parsers = {
  'express extended': [bodyParser.urlencoded({ extended: true, limit: '10mb' }), 'form'],
  'express simple': [bodyParser.urlencoded({ extended: false, limit: '10mb' }), 'form'],
  'express json': [bodyParser.json({ limit: '10mb' }), 'json'],
};

function parsed(found, req, body) {
  return Object.entries(parsers).map(([reader, [parse, source]]) => new Promise((resolve) => {
    const again = stream(req, body);
    parse(again, {}, () => {
      names(found, reader, source, again.body);
      resolve();
    });
  }));
}

function parts(found, req, body) {
  return new Promise((resolve) => {
    try {
      const parser = busboy({ headers: req.headers });
      parser.on('field', (name, value) => {
        if (NAMES.includes(name)) leaves(found, 'busboy', 'form', name, value);
      });
      parser.on('file', (name, file) => file.resume());
      parser.on('close', resolve);
      parser.on('error', resolve);
      parser.end(body);
    } catch (error) {
      resolve();
    }
  });
}

async function fetched(found, req, body) {
  try {
    const headers = { 'content-type': req.headers['content-type'] || '' };
    const form = await new Response(body, { headers }).formData();
    for (const name of NAMES) leaves(found, 'fetch', 'form', name, form.getAll(name).filter((value) => typeof value === 'string'));
  } catch (error) {
    // It is no form.
  }
}

async function read(req, body) {
  const found = [];
  const query = (/\?(.*)$/s.exec(req.url) || ['', ''])[1];
  names(found, 'express extended', 'query', qs.parse(query, { allowPrototypes: true }));
  names(found, 'express simple', 'query', querystring.parse(query));
  const url = new URL(req.url, 'http://x');
  for (const name of NAMES) leaves(found, 'URL', 'query', name, url.searchParams.getAll(name));
  await Promise.all([...parsed(found, req, body), parts(found, req, body), fetched(found, req, body)]);
  try {
    names(found, 'JSON.parse', 'json', JSON.parse(body.toString()));
  } catch (error) {
    // It is no JSON.
  }
  leaves(found, 'cookie', 'cookie', 'sid', cookie.parse(req.headers.cookie || '').sid);
  const basic = /^ *basic +(\S.*)$/i.exec(req.headers.authorization || '');
  if (basic) leaves(found, 'Buffer', 'basic', 'user', Buffer.from(basic[1], 'base64').toString().split(':')[0]);
  return JSON.stringify(found);
}

const server = http.createServer((req, res) => {
  const chunks = [];
  req.on('data', (chunk) => chunks.push(chunk));
  req.on('end', async () => {
    let answer = '[]';
    try {
      answer = await read(req, Buffer.concat(chunks));
    } catch (error) {
      answer = JSON.stringify([['node', 'error', '', String(error)]]);
    }
    res.setHeader('Content-Type', 'application/json');
    res.end(answer);
  });
});
server.keepAliveTimeout = 60000;
process.on('uncaughtException', () => {});
server.listen(Number(process.argv[3]), process.argv[2]);
