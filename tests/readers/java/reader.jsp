<%@ page contentType="application/json; charset=UTF-8" session="false" buffer="256kb" trimDirectiveWhitespaces="true"
    import="java.io.*,java.nio.charset.StandardCharsets,java.util.*,com.google.gson.*,jakarta.servlet.http.*" %><%!
// What Tomcat and Gson read. /raw: the body is read before Tomcat reads parameters from it.
static final String[] NAMES = {"username", "user_name", "user[name]"};

static void leaves(List<String[]> found, String reader, String source, String name, Object value) {
    if (value instanceof String || value instanceof Number) {
        found.add(new String[] {reader, source, name, String.valueOf(value)});
    } else if (value instanceof List<?> list) {
        for (Object element : list) leaves(found, reader, source, name, element);
    } else if (value instanceof Map<?, ?> map) {
        for (Object element : map.values()) leaves(found, reader, source, name, element);
    }
}

static class Login { String username; Inner user; }
static class Inner { String name; }
%><%
List<String[]> found = new ArrayList<>();
Gson gson = new Gson();
String type = Objects.toString(request.getContentType(), "").toLowerCase(Locale.ROOT);
boolean isRaw = request.getServletPath().startsWith("/raw");
byte[] body = new byte[0];
if (isRaw) {
    body = request.getInputStream().readAllBytes();
} else {
    for (String name : NAMES) {
        try {
            String[] values = request.getParameterValues(name);
            if (values != null) for (String value : values) leaves(found, "tomcat", "param", name, value);
        } catch (Exception e) { }
    }
    try {
        if (type.startsWith("multipart/")) {
            for (Part part : request.getParts()) {
                for (String name : NAMES) {
                    if (name.equals(part.getName()) && part.getSubmittedFileName() == null) {
                        leaves(found, "tomcat parts", "form", name, new String(part.getInputStream().readAllBytes(), StandardCharsets.UTF_8));
                    }
                }
            }
        }
    } catch (Exception e) { }
}
if (isRaw) {
    String text = new String(body, StandardCharsets.UTF_8);
    try {
        Object document = gson.fromJson(text, Object.class);
        if (document instanceof Map<?, ?> map) {
            for (String name : NAMES) leaves(found, "gson", "json", name, map.get(name));
            if (map.get("user") instanceof Map<?, ?> user) leaves(found, "gson", "json", "user.name", user.get("name"));
        }
    } catch (Exception e) { }
    try {
        Login login = gson.fromJson(new InputStreamReader(new ByteArrayInputStream(body), StandardCharsets.UTF_8), Login.class);
        if (login != null) {
            leaves(found, "gson class", "json", "username", login.username);
            if (login.user != null) leaves(found, "gson class", "json", "user.name", login.user.name);
        }
    } catch (Exception e) { }
    try {
        JsonObject object = JsonParser.parseString(text).getAsJsonObject();
        leaves(found, "gson tree", "json", "username", object.get("username").getAsString());
    } catch (Exception e) { }
}
Cookie[] cookies = request.getCookies();
if (cookies != null) {
    for (Cookie cookie : cookies) {
        if (cookie.getName().equals("sid")) leaves(found, "tomcat", "cookie", "sid", cookie.getValue());
    }
}
String sent = request.getHeader("Authorization");
if (sent != null && sent.toLowerCase(Locale.ROOT).startsWith("basic ")) {
    String encoded = sent.substring(6);
    try {
        String user = new String(Base64.getDecoder().decode(encoded.trim()), StandardCharsets.UTF_8);
        leaves(found, "java", "basic", "user", user.split(":", 2)[0]);
    } catch (Exception e) { }
    try {
        String user = new String(Base64.getMimeDecoder().decode(encoded), StandardCharsets.UTF_8);
        leaves(found, "java mime", "basic", "user", user.split(":", 2)[0]);
    } catch (Exception e) { }
}
out.print(gson.toJson(found));
%>
