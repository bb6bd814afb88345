#!/usr/bin/env perl
# What Perl sends: LWP, HTTP::Tiny and Mojolicious. Argument: the address to send it to.
use strict;
use warnings;
use utf8;
use Encode qw(encode);
use HTTP::Request::Common qw(POST);
use HTTP::Tiny;
use LWP::UserAgent;
use Mojo::UserAgent;

my $to = shift;
my @plain = (username => 'alice', password => 'secret');
my @awkward = (username => "Zoë O'Neil", password => "pässword &=+%;\"\n");
my @bytes = map { encode('UTF-8', $_) } @awkward;
my @photo = (photo => [undef, 'photo.png', Content_Type => 'image/png', Content => 'a file']);

my $lwp = LWP::UserAgent->new;
$lwp->post("$to/lwp/plain", \@plain);
$lwp->post("$to/lwp/form", \@bytes);
$lwp->request(POST "$to/lwp/multipart", Content_Type => 'form-data', Content => \@bytes);
$lwp->request(POST "$to/lwp/file", Content_Type => 'form-data', Content => [@bytes, @photo]);

my $tiny = HTTP::Tiny->new;
$tiny->post_form("$to/http-tiny/form", \@awkward);

my $mojo = Mojo::UserAgent->new;
$mojo->post("$to/mojo/form", form => {@awkward});
$mojo->post("$to/mojo/multipart", form => {@awkward, photo => {content => 'a file', filename => 'photo.png'}});
$mojo->post("$to/mojo/json", json => {@awkward});
