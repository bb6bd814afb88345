<%@ page contentType="text/plain" session="false" %>THE LOGIN of <%= request.getServletPath() %>
