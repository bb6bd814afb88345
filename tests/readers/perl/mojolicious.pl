#!/usr/bin/env perl
# What Mojolicious reads.
use Mojolicious::Lite -signatures;
use Mojo::JSON qw(encode_json);
use MIME::Base64 qw(decode_base64);

my @NAMES = ('username', 'user_name', 'user[name]');

sub leaves ($found, $reader, $source, $name, $value) {
  if (ref $value eq 'ARRAY') { leaves($found, $reader, $source, $name, $_) for @$value }
  elsif (ref $value eq 'HASH') { leaves($found, $reader, $source, $name, $_) for values %$value }
  elsif (defined $value && !ref $value) { push @$found, [$reader, $source, $name, "$value"] }
}

any '/*rest' => {rest => ''} => sub ($c) {
  my @found;
  my $req = $c->req;
  for my $name (@NAMES) {
    eval { leaves(\@found, 'mojolicious', 'query', $name, $req->query_params->every_param($name)) };
    eval { leaves(\@found, 'mojolicious', 'form', $name, $req->body_params->every_param($name)) };
    eval { leaves(\@found, 'mojolicious', 'param', $name, $c->every_param($name)) };
  }
  my $json = eval { $req->json };
  if (ref $json eq 'HASH') {
    leaves(\@found, 'mojolicious', 'json', $_, $json->{$_}) for @NAMES;
    leaves(\@found, 'mojolicious', 'json', 'user.name', $json->{user}{name}) if ref $json->{user} eq 'HASH';
  }
  eval { leaves(\@found, 'mojolicious', 'cookie', 'sid', $c->every_cookie('sid')) };
  eval {
    my $info = $req->url->to_abs->userinfo;
    leaves(\@found, 'mojolicious', 'basic', 'user', (split /:/, $info)[0]) if defined $info;
  };
  if (($req->headers->authorization // '') =~ /^Basic\s+(.*)$/i) {
    leaves(\@found, 'perl decode_base64', 'basic', 'user', (split /:/, decode_base64($1))[0]);
  }
  $c->render(data => encode_json(\@found), format => 'json');
};

app->log->level('fatal');
app->start;
