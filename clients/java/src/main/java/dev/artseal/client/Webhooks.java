package dev.artseal.client;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.artseal.client.model.EventMessage;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SignatureException;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.function.UnaryOperator;

/** Verifies what arrives at an endpoint. */
public final class Webhooks {
  private static final int KEY_BYTES_MIN = 24;
  private static final int SIGNATURES_MAX = 32;

  private final List<byte[]> keys = new ArrayList<>();
  private final Duration tolerance;
  private final Clock clock;

  /** With secrets of the endpoint, whsec_ included; a webhook may be five minutes old. */
  public Webhooks(String... secrets) {
    this(List.of(secrets), Duration.ofMinutes(5), Clock.systemUTC());
  }

  /** With the largest difference between the time of a webhook and the clock. */
  public Webhooks(List<String> secrets, Duration tolerance, Clock clock) {
    for (String secret : secrets) keys.add(Base64.getDecoder().decode(secret.replaceFirst("^whsec_", "")));
    if (keys.isEmpty() || keys.stream().anyMatch(key -> key.length < KEY_BYTES_MIN)) {
      throw new IllegalArgumentException("secrets must be secrets of webhooks as they were issued, whsec_ included");
    }
    this.tolerance = tolerance;
    this.clock = clock;
  }

  /**
   * Returns the event of a webhook. An event can arrive more than once: the header webhook-id is then the same.
   *
   * @param header returns a header, or null, such as {@code request::getHeader}.
   * @param body as it arrived, byte for byte.
   * @throws SignatureException if the webhook must not be trusted.
   */
  public EventMessage verify(UnaryOperator<String> header, byte[] body) throws SignatureException {
    String id = header.apply("webhook-id");
    String timestamp = header.apply("webhook-timestamp");
    String signatures = header.apply("webhook-signature");
    if (id == null || timestamp == null || signatures == null || !timestamp.matches("[0-9]{1,12}")) {
      throw new SignatureException("a header is missing, or webhook-timestamp is no number");
    }
    if (Math.abs(clock.instant().getEpochSecond() - Long.parseLong(timestamp)) > tolerance.toSeconds()) {
      throw new SignatureException("webhook-timestamp is more than " + tolerance.toSeconds() + " seconds from now");
    }
    try {
      boolean isSigned = false;
      for (byte[] key : keys) {
        byte[] mac = ArtsealClient.hmac(key, (id + "." + timestamp + ".").getBytes(UTF_8), body);
        byte[] expected = ("v1," + Base64.getEncoder().encodeToString(mac)).getBytes(UTF_8);
        for (String signature : signatures.split(" ", SIGNATURES_MAX)) {
          isSigned |= MessageDigest.isEqual(expected, signature.getBytes(UTF_8));
        }
      }
      if (!isSigned) throw new SignatureException("no signature is of this body by these secrets");
      return ArtsealClient.JSON.readValue(body, EventMessage.class);
    } catch (SignatureException error) {
      throw error;
    } catch (GeneralSecurityException | IOException error) {
      throw new SignatureException("the body is signed, but is no event", error);
    }
  }
}
