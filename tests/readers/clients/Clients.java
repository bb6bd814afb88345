// What Java sends: java.net.http and HttpURLConnection as tutorials use them, and Apache HttpClient. Argument: the address to
// send it to.
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URL;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import org.apache.http.client.entity.UrlEncodedFormEntity;
import org.apache.http.client.methods.HttpPost;
import org.apache.http.entity.ContentType;
import org.apache.http.entity.StringEntity;
import org.apache.http.impl.client.CloseableHttpClient;
import org.apache.http.impl.client.HttpClients;
import org.apache.http.message.BasicNameValuePair;

class Clients {
    static final String NAME = "Zoë O'Neil";
    static final String PASSWORD = "pässword &=+%;\"\n";
    static final String JSON = "{\"username\": \"Zoë O'Neil\", \"password\": \"pässword &=+%;\\\"\\n\"}";

    public static void main(String[] args) throws Exception {
        String to = args[0];
        HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        String form = "username=" + encoded(NAME) + "&password=" + encoded(PASSWORD);
        send(client, to + "/java-http-client/plain", "application/x-www-form-urlencoded", "username=alice&password=secret");
        send(client, to + "/java-http-client/form", "application/x-www-form-urlencoded", form);
        send(client, to + "/java-http-client/json", "application/json", JSON);
        String boundary = "----JavaBoundary1700000000000";
        StringBuilder parts = new StringBuilder();
        for (String[] field : new String[][] {{"username", NAME}, {"password", PASSWORD}}) {
            parts.append("--").append(boundary).append("\r\n");
            parts.append("Content-Disposition: form-data; name=\"").append(field[0]).append("\"\r\n\r\n");
            parts.append(field[1]).append("\r\n");
        }
        String file = "--" + boundary + "\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"photo.png\"\r\n"
            + "Content-Type: image/png\r\n\r\na file\r\n";
        String end = "--" + boundary + "--\r\n";
        send(client, to + "/java-http-client/multipart", "multipart/form-data; boundary=" + boundary, parts + end);
        send(client, to + "/java-http-client/file", "multipart/form-data;boundary=" + boundary, parts + file + end);
        String credentials = Base64.getEncoder().encodeToString("alice:secret".getBytes(StandardCharsets.UTF_8));
        client.send(
            HttpRequest.newBuilder(URI.create(to + "/java-http-client/basic")).header("Authorization", "Basic " + credentials)
                .POST(HttpRequest.BodyPublishers.noBody()).build(),
            HttpResponse.BodyHandlers.discarding());

        open(to + "/java-url-connection/plain", "application/x-www-form-urlencoded", "username=alice&password=secret");
        open(to + "/java-url-connection/untyped", null, form);
        open(to + "/java-url-connection/form", "application/x-www-form-urlencoded; charset=UTF-8", form);
        open(to + "/java-url-connection/json", "application/json; utf-8", JSON);
        // As in a widely copied MultipartUtility.
        String odd = parts.toString().replace("\"\r\n\r\n", "\"\r\nContent-Type: text/plain; charset=UTF-8\r\n\r\n");
        String image = file.replace("image/png\r\n", "image/png\r\nContent-Transfer-Encoding: binary\r\n");
        open(to + "/java-url-connection/file", "multipart/form-data; boundary=" + boundary, odd + image + "\r\n" + end);

        try (CloseableHttpClient apache = HttpClients.createDefault()) {
            List<BasicNameValuePair> pairs =
                List.of(new BasicNameValuePair("username", NAME), new BasicNameValuePair("password", PASSWORD));
            HttpPost post = new HttpPost(to + "/apache-http-client/form");
            post.setEntity(new UrlEncodedFormEntity(pairs, StandardCharsets.UTF_8));
            apache.execute(post).close();
            post = new HttpPost(to + "/apache-http-client/form-latin1");
            post.setEntity(new UrlEncodedFormEntity(List.of(new BasicNameValuePair("username", "alice"), pairs.get(1))));
            apache.execute(post).close();
            post = new HttpPost(to + "/apache-http-client/json");
            post.setEntity(new StringEntity(JSON, ContentType.APPLICATION_JSON));
            apache.execute(post).close();
        }
    }

    static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    static void send(HttpClient client, String to, String type, String body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(to)).header("Content-Type", type)
            .POST(HttpRequest.BodyPublishers.ofString(body)).build();
        client.send(request, HttpResponse.BodyHandlers.discarding());
    }

    static void open(String to, String type, String body) throws Exception {
        HttpURLConnection connection = (HttpURLConnection) new URL(to).openConnection();
        connection.setRequestMethod("POST");
        connection.setDoOutput(true);
        if (type != null) {
            connection.setRequestProperty("Content-Type", type);
        }
        connection.getOutputStream().write(body.getBytes(StandardCharsets.UTF_8));
        connection.getResponseCode();
    }
}
