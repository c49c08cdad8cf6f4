import java.io.IOException;
import java.net.URI;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.UUID;
import okhttp3.Interceptor;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.Response;
import okio.Buffer;
import okio.ByteString;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.JSON;
import org.openapitools.client.api.EscrowApi;
import org.openapitools.client.api.FilingApi;
import org.openapitools.client.api.ProvenanceApi;
import org.openapitools.client.api.WebhooksApi;
import org.openapitools.client.model.EscrowRequest;
import org.openapitools.client.model.EscrowType;
import org.openapitools.client.model.FilingRequest;
import org.openapitools.client.model.SettlementConflictError;
import org.openapitools.client.model.WebhookRequest;

/**
 * A platform's program on a client that openapi-generator generated, which makes the calls of a sale.
 *
 * <p>Prints their typed answers as JSON. ARTSEAL_URL, ARTSEAL_API_KEY and ARTSEAL_API_SECRET say where and as whom.
 */
public class Calls {
  static Response sign(Interceptor.Chain chain) throws IOException {
    Request request = chain.request();
    Buffer body = new Buffer();
    if (request.body() != null) request.body().writeTo(body);
    String query = request.url().encodedQuery();
    String target = request.url().encodedPath() + (query == null ? "" : "?" + query);
    String timestamp = String.valueOf(Instant.now().getEpochSecond());
    String nonce = UUID.randomUUID().toString();
    String message = request.method() + target + body.sha256().hex() + timestamp + nonce;
    ByteString secret = ByteString.encodeUtf8(System.getenv("ARTSEAL_API_SECRET"));
    return chain.proceed(
        request
            .newBuilder()
            .header("X-Api-Key", System.getenv("ARTSEAL_API_KEY"))
            .header("X-Timestamp", timestamp)
            .header("X-Nonce", nonce)
            .header("X-Signature", ByteString.encodeUtf8(message).hmacSha256(secret).hex())
            .build());
  }

  public static void main(String[] arguments) throws Exception {
    OkHttpClient http =
        new OkHttpClient.Builder().addInterceptor(Calls::sign).retryOnConnectionFailure(false).build();
    ApiClient client = new ApiClient(http).setBasePath(System.getenv("ARTSEAL_URL"));
    FilingApi filings = new FilingApi(client);
    EscrowApi escrows = new EscrowApi(client);

    var artwork =
        new FilingRequest()
            .author("齐白石 \"Qi\" 🖌")
            .era("1947")
            .size("68 × 136 cm")
            .material("ink & colour")
            .condition("good")
            .price(12_800_000L);
    var receipt = filings.createFiling(artwork, UUID.randomUUID().toString());
    var filing = filings.getFiling(receipt.getFilingNo());
    var terms =
        new EscrowRequest()
            .filingNo(filing.getFilingNo())
            .type(EscrowType.GUARANTEE)
            .amount(filing.getPrice())
            .buyerId("buyer-1")
            .sellerId("seller-1");
    var opened = escrows.createEscrow(terms, null);
    var released = escrows.releaseEscrow(opened.getEscrowId(), null);
    SettlementConflictError apiError = null;
    try {
      escrows.releaseEscrow(opened.getEscrowId(), null);
    } catch (ApiException error) {
      apiError = SettlementConflictError.fromJson(error.getResponseBody());
    }
    var provenance = new ProvenanceApi(client).getProvenance(filing.getFilingNo());

    WebhooksApi endpoints = new WebhooksApi(client);
    var endpoint =
        new WebhookRequest()
            .url(URI.create("https://gallery.example/hooks?of=sales"))
            .addEventTypesItem(WebhookRequest.EventTypesEnum.ESCROW_RELEASED);
    var created = endpoints.createWebhook(endpoint, null);
    var webhooks = endpoints.listWebhooks(null, null);

    var answers = new LinkedHashMap<String, Object>();
    answers.put("receipt", receipt);
    answers.put("filing", filing);
    answers.put("opened", opened);
    answers.put("released", released);
    answers.put("apiError", apiError);
    answers.put("provenance", provenance);
    answers.put("created", created);
    answers.put("webhooks", webhooks);
    System.out.println(JSON.serialize(answers));
    http.connectionPool().evictAll();
  }
}
