# What Ruby sends: net/http, HTTParty, and what rack-test writes. Argument: the address to send it to.
require 'json'
require 'net/http'
require 'stringio'
require 'tempfile'
require 'httparty'
require 'rack/test'

TO = ARGV[0]
PLAIN = { 'username' => 'alice', 'password' => 'secret' }.freeze
AWKWARD = { 'username' => "Zoë O'Neil", 'password' => "pässword &=+%;\"\n" }.freeze

def send_it(path)
  uri = URI(TO + path)
  request = Net::HTTP::Post.new(uri)
  yield request
  Net::HTTP.start(uri.host, uri.port, nil) { |http| http.request(request) }
end

send_it('/ruby-net-http/plain') { |request| request.set_form_data(PLAIN) }
send_it('/ruby-net-http/form') { |request| request.set_form_data(AWKWARD) }
send_it('/ruby-net-http/multipart') { |request| request.set_form(AWKWARD.to_a, 'multipart/form-data') }
send_it('/ruby-net-http/file') do |request|
  photo = ['photo', StringIO.new('a file'), { filename: 'photo.png', content_type: 'image/png' }]
  request.set_form(AWKWARD.to_a + [photo], 'multipart/form-data')
end
send_it('/ruby-net-http/json') do |request|
  request['Content-Type'] = 'application/json'
  request.body = AWKWARD.to_json
end
send_it('/ruby-net-http/basic') { |request| request.basic_auth('alice', 'secret') }

HTTParty.post("#{TO}/httparty/plain", body: PLAIN)
HTTParty.post("#{TO}/httparty/form", body: AWKWARD)
HTTParty.post("#{TO}/httparty/multipart", body: AWKWARD, multipart: true)
HTTParty.post("#{TO}/httparty/json", body: AWKWARD.to_json, headers: { 'Content-Type' => 'application/json' })
Tempfile.create(['photo', '.png']) do |file|
  file.write('a file')
  file.rewind
  HTTParty.post("#{TO}/httparty/file", body: AWKWARD.merge('photo' => file))
  upload = Rack::Test::UploadedFile.new(file.path, 'image/png')
  body = Rack::Test::Utils.build_multipart(AWKWARD.merge('photo' => upload))
  send_it('/rack-test/file') do |request|
    request['Content-Type'] = "multipart/form-data; boundary=#{Rack::Test::MULTIPART_BOUNDARY}"
    request.body = body
  end
end
