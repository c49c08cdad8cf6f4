# A platform's program on a client that openapi-generator generated, which makes the calls of a sale.
#
# Prints their typed answers as JSON. ARTSEAL_URL, ARTSEAL_API_KEY and ARTSEAL_API_SECRET say where and as whom.

require 'openapi_client'
require 'openssl'
require 'securerandom'
require 'uri'

Typhoeus.before do |request|
  timestamp = Time.now.to_i.to_s
  nonce = SecureRandom.hex(16)
  body_hash = OpenSSL::Digest::SHA256.hexdigest(request.options[:body].to_s)
  message = request.options[:method].to_s.upcase + URI(request.url).request_uri + body_hash + timestamp + nonce
  request.options[:headers].merge!(
    'X-Api-Key' => ENV.fetch('ARTSEAL_API_KEY'),
    'X-Timestamp' => timestamp,
    'X-Nonce' => nonce,
    'X-Signature' => OpenSSL::HMAC.hexdigest('SHA256', ENV.fetch('ARTSEAL_API_SECRET'), message)
  )
end

OpenapiClient.configure do |config|
  url = URI(ENV.fetch('ARTSEAL_URL'))
  config.server_index = nil
  config.scheme = url.scheme
  config.host = "#{url.host}:#{url.port}"
end
filings = OpenapiClient::FilingApi.new
escrows = OpenapiClient::EscrowApi.new

artwork = OpenapiClient::FilingRequest.new(
  author: '齐白石 "Qi" 🖌',
  era: '1947',
  size: '68 × 136 cm',
  material: 'ink & colour',
  condition: 'good',
  price: 12_800_000
)
receipt = filings.create_filing(artwork, idempotency_key: SecureRandom.uuid)
filing = filings.get_filing(receipt.filing_no)
terms = OpenapiClient::EscrowRequest.new(
  filing_no: filing.filing_no,
  type: OpenapiClient::EscrowType::GUARANTEE,
  amount: filing.price,
  buyer_id: 'buyer-1',
  seller_id: 'seller-1'
)
opened = escrows.create_escrow(terms)
released = escrows.release_escrow(opened.escrow_id)
begin
  escrows.release_escrow(opened.escrow_id)
rescue OpenapiClient::ApiError => error
  apiError = OpenapiClient::SettlementConflictError.build_from_hash(JSON.parse(error.response_body, symbolize_names: true))
end
provenance = OpenapiClient::ProvenanceApi.new.get_provenance(filing.filing_no)

endpoints = OpenapiClient::WebhooksApi.new
endpoint = OpenapiClient::WebhookRequest.new(
  url: 'https://gallery.example/hooks?of=sales',
  event_types: ['escrow.released']
)
created = endpoints.create_webhook(endpoint)
webhooks = endpoints.list_webhooks

answers = { receipt:, filing:, opened:, released:, apiError:, provenance:, created:, webhooks: }
puts answers.transform_values(&:to_hash).to_json
