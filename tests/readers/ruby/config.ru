# What Rack and Sinatra read.
require 'json'
require 'rack'
require 'sinatra/base'

# Rows of [reader, source, name, value].
module Reading
  NAMES = %w[username user_name user[name]].freeze

  module_function

  def leaves(found, reader, source, name, value)
    case value
    when String, Numeric
      found << [reader, source, name, value.to_s.dup.force_encoding('UTF-8').scrub]
    when Array then value.each { |element| leaves(found, reader, source, name, element) }
    when Hash
      # An uploaded file is no name.
      value.each_value { |element| leaves(found, reader, source, name, element) } unless value.key?(:tempfile)
    end
  end

  def names(found, reader, source)
    read = yield
    return unless read.respond_to?(:key?)

    NAMES.each { |name| leaves(found, reader, source, name, read[name]) }
    user = read['user']
    leaves(found, reader, source, source == 'json' ? 'user.name' : 'user[name]', user['name']) if user.is_a?(Hash)
  rescue StandardError, SystemStackError
    nil
  end

  def try
    yield
  rescue StandardError
    nil
  end
end

class SinatraReader < Sinatra::Base
  set :environment, :production
  set :logging, false
  set :protection, false
  %i[get post put].each do |verb|
    send(verb, '/*') do
      found = []
      Reading.names(found, 'sinatra', 'param') { params }
      JSON.generate(found)
    end
  end
end

SINATRA = SinatraReader.new

run(lambda do |env|
  found = []
  body = env['rack.input'].read.to_s
  again = -> { env.merge('rack.input' => StringIO.new(body)).reject { |key, _| key.start_with?('rack.request') } }
  request = Rack::Request.new(again.call)
  Reading.names(found, 'rack', 'query') { request.GET }
  Reading.names(found, 'rack', 'form') { request.POST }
  Reading.names(found, 'ruby json', 'json') { JSON.parse(body) }
  Reading.try { Reading.leaves(found, 'rack', 'cookie', 'sid', request.cookies['sid']) }
  Reading.try do
    auth = Rack::Auth::Basic::Request.new(env)
    Reading.leaves(found, 'rack', 'basic', 'user', auth.credentials.first) if auth.provided? && auth.basic?
  end
  Reading.try { found.concat(JSON.parse(SINATRA.call(again.call)[2].each.to_a.join)) }
  [200, { 'Content-Type' => 'application/json' }, [JSON.generate(found)]]
end)
