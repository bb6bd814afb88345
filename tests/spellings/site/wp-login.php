THE LOGIN of wp-login.php
