THE LOGIN of account/index.php
