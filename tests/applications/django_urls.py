

from django.contrib.auth.views import LoginView

# A login of the usual kind beside that of the admin: it sends away who is signed in already.
urlpatterns.append(path(
    "accounts/login/",
    LoginView.as_view(template_name="admin/login.html", redirect_authenticated_user=True, next_page="/admin/"),
))

# The admin once more, below a prefix.
urlpatterns.append(path("intranet/admin/", admin.site.urls))
