"""What Django reads."""
import json

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import re_path

from common import Found

settings.configure(
    ALLOWED_HOSTS=["*"], SECRET_KEY="x", ROOT_URLCONF=__name__, MIDDLEWARE=[], LOGGING_CONFIG=None, DEBUG=False
)


def read(request):
    found = Found("django")
    body = request.body
    found.fields("query", request.GET.getlist)
    try:
        found.fields("form", request.POST.getlist)
    except Exception:
        pass
    found.json(lambda: json.loads(body))
    found.leaves("cookie", "sid", request.COOKIES.get("sid"))
    found.basic(request.META.get("HTTP_AUTHORIZATION"))
    answer = found.answer()
    return HttpResponse(answer, content_type="application/json", headers={"Content-Length": str(len(answer))})


urlpatterns = [re_path("", read)]
application = get_wsgi_application()
