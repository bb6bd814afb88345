"""What Python applications make of a name. Lines and columns are as those of applications.php; the columns are Django's login form
with exact names, and with names that are compared without case in the three usual ways."""
import base64
import sys
import unicodedata

from django.conf import settings
from django.core.exceptions import ValidationError

settings.configure(INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"], USE_I18N=False)
import django

django.setup()
from django.contrib.auth.forms import UsernameField

field = UsernameField(max_length=254)


def readings(name):
    try:
        read = field.clean(name)
    except ValidationError:
        read = ""
    # The last is calibre-web's own.
    bare = name.strip().lower().replace("\n", "").replace("\r", "")
    return [read, read.lower(), read.upper(), unicodedata.normalize("NFKC", read).casefold(), bare]


for line in sys.stdin:
    name = base64.b64decode(line).decode()
    print("\t".join(base64.b64encode(read.encode()).decode() for read in readings(name)))
