import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.Base64;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Webhook {
    // In production, a unique column of your database.
    static final Set<String> SEEN = ConcurrentHashMap.newKeySet();

    static boolean isValid(byte[] key, String id, String timestamp, String signatures, byte[] body)
            throws Exception {
        if (id == null || signatures == null || timestamp == null || !timestamp.matches("\\d{1,12}")
                || Math.abs(Instant.now().getEpochSecond() - Long.parseLong(timestamp)) > 300) {
            return false;
        }
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        mac.update((id + "." + timestamp + ".").getBytes(StandardCharsets.UTF_8));
        String expected = "v1," + Base64.getEncoder().encodeToString(mac.doFinal(body));
        for (String given : signatures.split(" ")) {
            if (MessageDigest.isEqual(expected.getBytes(StandardCharsets.UTF_8),
                    given.getBytes(StandardCharsets.UTF_8))) {
                return true;
            }
        }
        return false;
    }

    public static void main(String[] arguments) throws Exception {
        String secret = System.getenv("AVOUCH_WEBHOOK_SECRET");
        byte[] key = Base64.getDecoder().decode(secret.replaceFirst("^whsec_", ""));
        HttpServer server = HttpServer.create(new InetSocketAddress(4000), 0);
        server.createContext("/", exchange -> {
            byte[] body = exchange.getRequestBody().readAllBytes(); // verify before you parse
            var headers = exchange.getRequestHeaders();
            String id = headers.getFirst("webhook-id");
            int status = 401;
            try {
                if (isValid(key, id, headers.getFirst("webhook-timestamp"),
                        headers.getFirst("webhook-signature"), body)) {
                    status = 204;
                    if (SEEN.add(id)) {
                        System.out.println("Verified: " + new String(body, StandardCharsets.UTF_8));
                    }
                }
            } catch (Exception error) {
                status = 500;
            }
            exchange.sendResponseHeaders(status, -1);
            exchange.close();
        });
        server.start();
    }
}
