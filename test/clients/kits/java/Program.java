import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.artseal.client.ArtsealClient;
import dev.artseal.client.ArtsealException;
import dev.artseal.client.Webhooks;
import dev.artseal.client.model.EscrowRequest;
import dev.artseal.client.model.EscrowState;
import dev.artseal.client.model.FilingRequest;
import dev.artseal.client.model.WebhookChange;
import dev.artseal.client.model.WebhookRequest;
import dev.artseal.client.model.WebhookStatus;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.SignatureException;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** Runs the steps of the test plan with the Java kit: one JSON object a line in, one out. */
public final class Program {
  private static final ObjectMapper JSON = new ObjectMapper();

  private static ArtsealClient newClient(JsonNode access) {
    Clock clock = Clock.offset(Clock.systemUTC(), Duration.ofSeconds(access.path("clockOffsetS").asLong()));
    return ArtsealClient.builder(
            access.get("url").asText(), access.get("apiKey").asText(), access.get("apiSecret").asText())
        .clock(clock)
        .timeout(Duration.ofMillis((long) (access.path("timeoutS").asDouble(60) * 1000)))
        .build();
  }

  private static <T, V> List<V> collect(Iterable<T> items, int max, Function<T, V> value) {
    List<V> values = new ArrayList<>();
    for (T item : items) {
      values.add(value.apply(item));
      if (values.size() == max) break;
    }
    return values;
  }

  private static Object verify(JsonNode step) throws SignatureException {
    List<String> secrets = new ArrayList<>();
    step.get("secrets").forEach(secret -> secrets.add(secret.asText()));
    Clock clock = Clock.fixed(Instant.ofEpochSecond(step.get("nowS").asLong()), ZoneOffset.UTC);
    byte[] body = step.get("body").asText().getBytes(StandardCharsets.UTF_8);
    return new Webhooks(secrets, Duration.ofMinutes(5), clock)
        .verify(name -> step.get("headers").path(name).asText(null), body);
  }

  private static Object call(JsonNode step, ArtsealClient client) throws Exception {
    String filingNo = step.path("filingNo").asText();
    String webhookId = step.path("webhookId").asText();
    int pageSize = step.path("pageSize").asInt();
    int max = step.path("max").asInt();
    switch (step.get("step").asText()) {
      case "file":
        FilingRequest artwork = JSON.treeToValue(step.get("artwork"), FilingRequest.class);
        if (!step.has("idempotencyKey")) return client.createFiling(artwork);
        return client.createFiling(artwork, step.get("idempotencyKey").asText());
      case "get":
        return client.getFiling(filingNo);
      case "provenance":
        return client.getProvenance(filingNo);
      case "escrow":
        return client.createEscrow(JSON.treeToValue(step.get("order"), EscrowRequest.class));
      case "release":
        return client.releaseEscrow(step.get("escrowId").asText());
      case "filings":
        return collect(client.filings(null, pageSize), max, filing -> filing.filingNo());
      case "orders":
        EscrowState state = EscrowState.valueOf(step.get("state").asText());
        return collect(client.escrows(state, null, pageSize), max, order -> order.escrowId());
      case "events":
        return collect(client.events(step.get("after").asLong(), null), max, event -> event.sequence());
      case "addWebhook":
        List<String> eventTypes = new ArrayList<>();
        step.get("eventTypes").forEach(type -> eventTypes.add(type.asText()));
        return client.createWebhook(
            WebhookRequest.builder().url(step.get("url").asText()).eventTypes(eventTypes).build());
      case "editWebhook":
        WebhookStatus status = WebhookStatus.valueOf(step.get("status").asText());
        return client.updateWebhook(webhookId, WebhookChange.builder().status(status).build());
      case "print":
        return client.toString();
      case "removeWebhook":
        return client.deleteWebhook(webhookId);
      default:
        throw new IllegalArgumentException("no step " + step);
    }
  }

  private static Map<String, Object> failed(String code, String message, int status, String requestId, String help) {
    Map<String, Object> error = new LinkedHashMap<>();
    error.put("code", code);
    error.put("message", message);
    error.put("status", status);
    error.put("requestId", requestId);
    error.put("help", help);
    return Map.of("ok", false, "error", error);
  }

  private static Map<String, Object> run(JsonNode step, Map<JsonNode, ArtsealClient> clients) throws Exception {
    if (step.get("step").asText().equals("evidence")) return Map.of("unsupported", true);
    if (step.get("step").asText().equals("webhook")) {
      try {
        return Map.of("ok", true, "result", verify(step));
      } catch (SignatureException error) {
        return failed("WEBHOOK", error.getMessage(), 0, null, null);
      }
    }
    try {
      ArtsealClient client = clients.computeIfAbsent(step.get("client"), Program::newClient);
      return Map.of("ok", true, "result", call(step, client));
    } catch (IllegalArgumentException error) {
      return failed("ARGUMENT", error.getMessage(), 0, null, null);
    } catch (ArtsealException error) {
      return failed(error.code, error.getMessage(), error.status, error.requestId, error.help);
    }
  }

  public static void main(String[] words) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    Map<JsonNode, ArtsealClient> clients = new HashMap<>();
    for (String line = lines.readLine(); line != null; line = lines.readLine())
      output.println(JSON.writeValueAsString(run(JSON.readTree(line), clients)));
  }
}
