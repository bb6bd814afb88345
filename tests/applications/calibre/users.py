"""Makes the settings of a calibre-web with these users. Arguments: the file of settings, the password, the names."""
import os
import sqlite3
import sys

import calibreweb
from werkzeug.security import generate_password_hash

file, password, *names = sys.argv[1:]
# Its own modules expect to be found so, and read the command line.
sys.path.insert(0, os.path.dirname(calibreweb.__file__))
del sys.argv[1:]
from cps import config_sql, ub

ub.init_db(file)
config_sql.load_configuration(ub.session, None)
ub.session.close()
secret = generate_password_hash(password, method="pbkdf2:sha256:1000")
with sqlite3.connect(file) as database:
    database.row_factory = sqlite3.Row
    model = dict(database.execute("SELECT * FROM user WHERE name = 'admin'").fetchone())
    for number, name in enumerate(names, 10):
        user = {**model, "id": number, "name": name, "email": f"{name}@example.com", "password": secret, "role": 0}
        marks = ", ".join("?" * len(user))
        database.execute(f"INSERT INTO user ({', '.join(user)}) VALUES ({marks})", list(user.values()))
    # Its own limit is off: it is the gateway's that is tried.
    database.execute("UPDATE settings SET config_ratelimiter = 0")
