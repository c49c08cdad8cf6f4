// As verify.py, with verify of docs/platforms/webhooks.md, here as Webhooks.java.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.security.SignatureException;
import java.time.Instant;
import java.util.Base64;

final class Main {
    public static void main(String[] words) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t", -1);
            Instant now = Instant.ofEpochSecond(Long.parseLong(text(parts[1])));
            byte[] body = Base64.getDecoder().decode(parts[5]);
            try {
                Webhooks.verify(text(parts[0]), header(parts[2]), header(parts[3]), header(parts[4]), body, now);
                System.out.println("accepted");
            } catch (SignatureException | IllegalArgumentException refused) {
                System.out.println("refused");
            }
        }
    }

    private static String text(String part) {
        return new String(Base64.getDecoder().decode(part), StandardCharsets.UTF_8);
    }

    private static String header(String part) {
        return part.isEmpty() ? null : text(part);
    }
}
