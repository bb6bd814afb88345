"""What all readers in Python share: the names that are asked for, and the answer."""
import base64
import json

FIELDS = ("username", "user_name", "user[name]")


class Found:
    """A list of [reader, source, name, value]."""

    def __init__(self, reader):
        self.reader = reader
        self.rows = []

    def leaves(self, source, name, value, reader=None):
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (list, tuple)):
            for element in value:
                self.leaves(source, name, element, reader)
        elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
            self.rows.append([reader or self.reader, source, name, str(value)])

    def fields(self, source, values_of):
        for name in FIELDS:
            try:
                self.leaves(source, name, values_of(name))
            except Exception:
                pass

    def json(self, read, reader=None):
        try:
            document = read()
        except Exception:
            return
        if isinstance(document, dict):
            for name in FIELDS:
                self.leaves("json", name, document.get(name), reader)
            if isinstance(document.get("user"), dict):
                self.leaves("json", "user.name", document["user"].get("name"), reader)

    def basic(self, authorization):
        """As guides have it."""
        scheme, _, encoded = (authorization or "").partition(" ")
        if scheme.lower() == "basic":
            try:
                user = base64.b64decode(encoded).decode("utf-8", "replace").partition(":")[0]
            except Exception:
                return
            self.leaves("basic", "user", user, self.reader + " b64decode")

    def answer(self):
        return json.dumps(self.rows).encode()
