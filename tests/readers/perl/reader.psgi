# What Plack reads.
use strict;
use warnings;
use JSON::PP;
use MIME::Base64 qw(decode_base64);
use Plack::Request;

my @NAMES = ('username', 'user_name', 'user[name]');
my $json = JSON::PP->new->utf8->allow_nonref;

sub leaves {
    my ($found, $reader, $source, $name, $value) = @_;
    if (ref $value eq 'ARRAY') { leaves($found, $reader, $source, $name, $_) for @$value }
    elsif (ref $value eq 'HASH') { leaves($found, $reader, $source, $name, $_) for values %$value }
    elsif (defined $value && !ref $value) { push @$found, [$reader, $source, $name, "$value"] }
}

sub {
    my $req = Plack::Request->new(shift);
    my @found;
    for my $name (@NAMES) {
        eval { leaves(\@found, 'plack', 'query', $name, $_) for $req->query_parameters->get_all($name) };
        eval { leaves(\@found, 'plack', 'form', $name, $_) for $req->body_parameters->get_all($name) };
        eval { leaves(\@found, 'plack', 'param', $name, $_) for $req->parameters->get_all($name) };
    }
    my $document = eval { $json->decode($req->content) };
    if (ref $document eq 'HASH') {
        leaves(\@found, 'JSON::PP', 'json', $_, $document->{$_}) for @NAMES;
        leaves(\@found, 'JSON::PP', 'json', 'user.name', $document->{user}{name}) if ref $document->{user} eq 'HASH';
    }
    eval { leaves(\@found, 'plack', 'cookie', 'sid', $req->cookies->{sid}) };
    if (($req->header('Authorization') // '') =~ /^Basic (.*)$/i) {
        leaves(\@found, 'plack', 'basic', 'user', (split /:/, decode_base64($1), 2)[0]);
    }
    my $answer = $json->encode(\@found);
    [200, ['Content-Type' => 'application/json', 'Content-Length' => length $answer], [$answer]];
};
