package dev.artseal.client;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.artseal.client.model.*;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.*;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.*;
import java.time.format.DateTimeFormatter;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** Calls the REST API of one Artseal service: signs requests, retries them safely, follows pages. It is thread-safe. */
public final class ArtsealClient extends ArtsealOperations {
  private static final int TRIES_MAX = 4;
  private static final int RESPONSE_BYTES_MAX = 4 << 20;
  private static final Duration CLOCK_OFFSET_MAX = Duration.ofHours(24);
  private static final int FIRST_PAUSE_MS = 250;
  private static final Set<Integer> TEMPORARY = Set.of(0, 429, 500, 502, 503, 504);
  private static final Pattern EMPTY_PART = Pattern.compile("/\\.{0,2}(/|$)");
  private static final String THIS_MACHINE = "localhost|127\\.[0-9.]+|\\[::1]";
  private static final Pattern HELP = Pattern.compile("<([^>]*)>\\s*;\\s*rel=\"?help\"?");
  static final ObjectMapper JSON = new ObjectMapper().enable(DeserializationFeature.READ_UNKNOWN_ENUM_VALUES_AS_NULL);

  private final Builder options;
  private final URI base;
  private volatile Duration clockOffset = Duration.ZERO;

  private ArtsealClient(Builder options) {
    this.options = options;
    base = URI.create(options.baseUrl);
  }

  /**
   * Builds a client.
   *
   * @param baseUrl the address of the service, such as https://registry.example
   * @param apiKey as the operator issued it
   * @param apiSecret as the operator issued it; it is not sent
   */
  public static Builder builder(String baseUrl, String apiKey, String apiSecret) {
    if (!baseUrl.matches("https?://[^/?#@]+/?")) {
      throw new IllegalArgumentException("baseUrl must be an address such as https://registry.example, without a path");
    }
    if (!apiKey.matches("[!-~]+") || !apiSecret.matches("[!-~]+")) {
      throw new IllegalArgumentException("apiKey and apiSecret must be as issued, without white space");
    }
    return new Builder(baseUrl, apiKey, apiSecret);
  }

  /** Builds an {@link ArtsealClient}. */
  public static final class Builder {
    private final String baseUrl;
    private final String apiKey;
    private final String apiSecret;
    private Duration timeout = Duration.ofMinutes(1);
    private Clock clock = Clock.systemUTC();
    private HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    private Builder(String baseUrl, String apiKey, String apiSecret) {
      this.baseUrl = baseUrl;
      this.apiKey = apiKey;
      this.apiSecret = apiSecret;
    }

    /** Limits a call with all its tries; the default is a minute. */
    public Builder timeout(Duration timeout) {
      this.timeout = Objects.requireNonNull(timeout);
      return this;
    }

    /** The clock; the default is that of the system. */
    public Builder clock(Clock clock) {
      this.clock = Objects.requireNonNull(clock);
      return this;
    }

    /** What sends requests, for example through a proxy. It must not follow redirects. */
    public Builder httpClient(HttpClient http) {
      if (http.followRedirects() != HttpClient.Redirect.NEVER) throw new IllegalArgumentException("it follows redirects");
      this.http = http;
      return this;
    }

    /** Returns the client. It has sent nothing yet. */
    public ArtsealClient build() {
      return new ArtsealClient(this);
    }
  }

  /** Your filings, highest number first. The loop asks for a page when it gets there. Null means the default. */
  public Iterable<Filing> filings(Integer year, Integer pageSize) {
    return pages((String token) -> {
      FilingPage page = listFilings(pageSize, token, year);
      return new Page<>(page.filings(), page.nextPageToken().isEmpty() ? null : page.nextPageToken());
    }, null);
  }

  /** Your orders, newest first, as with {@link #filings}. */
  public Iterable<Escrow> escrows(EscrowState state, String filingNo, Integer pageSize) {
    return pages((String token) -> {
      EscrowPage page = listEscrows(pageSize, token, state, filingNo);
      return new Page<>(page.escrows(), page.nextPageToken().isEmpty() ? null : page.nextPageToken());
    }, null);
  }

  /**
   * Your events after a cursor, oldest first, up to the first empty page. Store the sequence of an event once you have
   * handled it: it is the cursor of the next call.
   */
  public Iterable<Event> events(Long after, Integer waitSeconds) {
    return pages((Long cursor) -> {
      EventList page = listEvents(cursor, waitSeconds);
      return new Page<>(page.events(), page.events().isEmpty() ? null : page.next());
    }, after);
  }

  /** Items, and the cursor of the next page; null if there is none. */
  private record Page<T, C>(List<T> items, C next) {}

  private static <T, C> Iterable<T> pages(Function<C, Page<T, C>> fetch, C first) {
    UnaryOperator<Page<T, C>> following = page -> page.next() == null ? null : fetch.apply(page.next());
    return () -> Stream.iterate(fetch.apply(first), Objects::nonNull, following)
        .flatMap(page -> page.items().stream())
        .iterator();
  }

  static String escaped(Object value) {
    return URLEncoder.encode(value.toString(), UTF_8).replace("+", "%20");
  }

  @Override
  <T> T call(String method, String path, List<Object> query, Object body, String idempotencyKey, Class<T> type) {
    long deadline = System.nanoTime() + options.timeout.toNanos();
    if (EMPTY_PART.matcher(path).find()) {
      throw new IllegalArgumentException(path + " has a part that is empty, . or ..");
    }
    if (idempotencyKey != null && !idempotencyKey.matches("[!-~]{1,255}")) {
      throw new IllegalArgumentException("idempotencyKey must be 1 to 255 visible ASCII characters");
    }
    StringBuilder target = new StringBuilder(path);
    for (int place = 0; place < query.size(); place += 2) {
      if (query.get(place + 1) == null) continue;
      target.append(target.length() == path.length() ? "?" : "&");
      target.append(query.get(place)).append("=").append(escaped(query.get(place + 1)));
    }
    byte[] content = body == null ? new byte[0] : JSON.valueToTree(body).toString().getBytes(UTF_8);
    HttpRequest.Builder request = HttpRequest.newBuilder(base.resolve(target.toString()))
        .header("User-Agent", "artseal-java/" + VERSION)
        .method(method, HttpRequest.BodyPublishers.noBody());
    if (body != null) {
      request.header("Content-Type", "application/json").method(method, HttpRequest.BodyPublishers.ofByteArray(content));
    }
    if (!method.equals("GET")) {
      request.header("Idempotency-Key", Objects.requireNonNullElseGet(idempotencyKey, () -> UUID.randomUUID().toString()));
    }
    boolean clockWasSet = false;
    for (int tries = 1; ; tries++) {
      HttpResponse<byte[]> response = null;
      ArtsealException failure;
      try {
        sign(request, method + target, content);
        response = send(request.build(), deadline);
        return decode(response, type);
      } catch (ArtsealException error) {
        failure = error;
      }
      if (tries == TRIES_MAX) throw failure;
      if (failure.code.equals("TIMESTAMP_EXPIRED") && !clockWasSet && setClock(response)) {
        clockWasSet = true;
      } else if (!isTemporary(failure) || !sleep(pauseMs(response, tries), deadline)) {
        throw failure;
      }
    }
  }

  private void sign(HttpRequest.Builder request, String methodAndTarget, byte[] content) {
    String timestamp = String.valueOf(options.clock.instant().plus(clockOffset).getEpochSecond());
    String nonce = UUID.randomUUID().toString();
    try {
      String digest = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(content));
      byte[] message = (methodAndTarget + digest + timestamp + nonce).getBytes(UTF_8);
      String signature = HexFormat.of().formatHex(hmac(options.apiSecret.getBytes(UTF_8), message));
      request.setHeader("X-Api-Key", options.apiKey).setHeader("X-Timestamp", timestamp)
          .setHeader("X-Nonce", nonce).setHeader("X-Signature", signature);
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException(error);
    }
  }

  /** HMAC-SHA256 of parts that follow each other. */
  static byte[] hmac(byte[] key, byte[]... parts) throws GeneralSecurityException {
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(key, "HmacSHA256"));
    for (byte[] part : parts) mac.update(part);
    return mac.doFinal();
  }

  private HttpResponse<byte[]> send(HttpRequest request, long deadline) {
    CompletableFuture<HttpResponse<byte[]>> response = options.http.sendAsync(request, ArtsealClient::limitedBody);
    Throwable cause;
    try {
      return response.get(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      cause = error;
    } catch (ExecutionException | TimeoutException error) {
      cause = error;
    }
    response.cancel(true);
    for (Throwable inner = cause; inner != null; inner = inner.getCause()) {
      if (inner instanceof ArtsealException tooLong) throw tooLong;
    }
    throw new ArtsealException("NO_RESPONSE", "No response: " + cause, 0, null, null, cause);
  }

  /** Collects a body. One that is too long fails the response. */
  private static HttpResponse.BodySubscriber<byte[]> limitedBody(HttpResponse.ResponseInfo response) {
    ByteArrayOutputStream body = new ByteArrayOutputStream();
    return HttpResponse.BodySubscribers.mapping(HttpResponse.BodySubscribers.ofByteArrayConsumer(part -> {
      body.writeBytes(part.orElse(new byte[0]));
      if (body.size() <= RESPONSE_BYTES_MAX) return;
      String message = "The response has more than " + RESPONSE_BYTES_MAX + " bytes.";
      throw new ArtsealException("BAD_RESPONSE", message, response.statusCode(), null, null, null);
    }), nothing -> body.toByteArray());
  }

  private <T> T decode(HttpResponse<byte[]> response, Class<T> type) {
    int status = response.statusCode();
    Matcher link = HELP.matcher(response.headers().firstValue("Link").orElse(""));
    String help = link.find() ? base.resolve(link.group(1)).toString() : null;
    String requestId = response.headers().firstValue("X-Request-Id").orElse(null);
    IOException cause = null;
    try {
      if (status / 100 == 2 && type == String.class) return type.cast(new String(response.body(), UTF_8));
      T result = status / 100 == 2 ? JSON.readValue(response.body(), type) : null;
      if (result != null) return result;
      JsonNode sent = JSON.readTree(response.body());
      if (status >= 400 && sent.path("code").isTextual()) {
        String id = sent.path("requestId").asText(requestId);
        throw new ArtsealException(sent.get("code").asText(), sent.path("message").asText(), status, id, help, null);
      }
    } catch (IOException error) {
      cause = error;
    }
    String message = "The response with status " + status + " is not one of an Artseal server.";
    throw new ArtsealException("BAD_RESPONSE", message, status, requestId, help, cause);
  }

  /**
   * Takes the time from a response. Returns false if it is missing, implausible, or not from the server for certain: a
   * network that sets the clock could send a signed request much later.
   */
  private boolean setClock(HttpResponse<byte[]> response) {
    if (!base.getScheme().equals("https") && !base.getHost().matches(THIS_MACHINE)) return false;
    try {
      String date = response.headers().firstValue("Date").orElse("");
      Instant server = DateTimeFormatter.RFC_1123_DATE_TIME.parse(date, Instant::from);
      Duration offset = Duration.between(options.clock.instant(), server);
      if (offset.abs().compareTo(CLOCK_OFFSET_MAX) > 0) return false;
      clockOffset = offset;
      return true;
    } catch (DateTimeException error) {
      return false;
    }
  }

  /** Whether another try may succeed. Each call is a read or has an Idempotency-Key. */
  private static boolean isTemporary(ArtsealException failure) {
    // HttpClient repeats a GET by itself, with the same nonce, if a connection that it kept was closed.
    return Set.of("IDEMPOTENCY_IN_PROGRESS", "NONCE_REUSED").contains(failure.code) || TEMPORARY.contains(failure.status);
  }

  /** How long to wait after a try: as long as the server says, or twice as long as before, with jitter. */
  private static long pauseMs(HttpResponse<byte[]> response, int tries) {
    String said = response == null ? "" : response.headers().firstValue("Retry-After").orElse("");
    if (said.matches("[0-9]{1,9}")) return Long.parseLong(said) * 1000;
    int longest = FIRST_PAUSE_MS << (tries - 1);
    return ThreadLocalRandom.current().nextInt(longest / 2, longest + 1);
  }

  /** Waits. Returns false, at once if it can, if the time of the call ends first. */
  private static boolean sleep(long pauseMs, long deadline) {
    if (System.nanoTime() + pauseMs * 1_000_000 - deadline >= 0) return false;
    try {
      Thread.sleep(pauseMs);
      return true;
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      return false;
    }
  }
}
