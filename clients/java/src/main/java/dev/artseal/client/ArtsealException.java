package dev.artseal.client;

/** The error of a call that failed. */
public final class ArtsealException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /**
   * What is wrong: a code of the API; {@code NO_RESPONSE} if the last try got no response, so that the result is
   * unknown; or {@code BAD_RESPONSE} if the response is not one of an Artseal server.
   */
  public final String code;

  /** The HTTP status; 0 if there was no response. */
  public final int status;

  /** The name of the call in the operator's log, or null. */
  public final String requestId;

  /** The address of a page that explains the code, or null. */
  public final String help;

  ArtsealException(String code, String message, int status, String requestId, String help, Throwable cause) {
    super(message, cause);
    this.code = code;
    this.status = status;
    this.requestId = requestId;
    this.help = help;
  }

  @Override
  public String toString() {
    return "ArtsealException: " + code + ": " + getMessage() + " (status " + status + ", request " + requestId + ")";
  }
}
