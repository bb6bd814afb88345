// A login as applications of Express have it: sessions for everybody, redirects for success and failure. Arguments: host,
// port, and the file that is told of every password judged.
const crypto = require('crypto');
const express = require('express');
const fs = require('fs');

const PASSWORD = 'correct horse';
const [host, port, told] = process.argv.slice(2);
const sessions = new Map();
const app = express();

app.use(express.urlencoded({ extended: true }));
app.use(express.json());
app.use((req, res, next) => {
  const sent = /(?:^|; )connect\.sid=([^;]*)/.exec(req.headers.cookie || '');
  req.begin = (user) => {
    req.id = crypto.randomUUID();
    sessions.set(req.id, { user });
    res.cookie('connect.sid', req.id, { httpOnly: true, path: '/' });
  };
  req.id = sent && sent[1];
  if (!sessions.has(req.id)) {
    req.begin(null);
  }
  next();
});
app.post('/login', (req, res) => {
  if (sessions.get(req.id).user) {
    return res.redirect('/account');
  }
  const { username, password } = req.body;
  fs.appendFileSync(told, `judged ${username}\n`);
  if (password !== PASSWORD) {
    return res.redirect('/login?next=' + encodeURIComponent(req.query.next || '/account'));
  }
  req.begin(username);
  return res.redirect('/account');
});
app.post('/logout', (req, res) => {
  sessions.delete(req.id);
  res.clearCookie('connect.sid', { path: '/' });
  res.redirect('/account');
});
app.get('/account', (req, res) => res.send(`hello ${sessions.get(req.id).user || 'stranger'}\n`));
app.listen(Number(port), host);
