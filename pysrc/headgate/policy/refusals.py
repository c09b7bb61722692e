"""What `jwtAuth`, `apiKey` and `basicAuth` refuse with, in a module of its own: the error table has it where none of
them is configured.
"""

from __future__ import annotations

UNAUTHORIZED = b'{"error":"unauthorized","error_description":"JWT token required"}'
REASON = "JwtAuth"
NO_API_KEY = "api key authentication failure: no API Key found"
BAD_API_KEY = "api key authentication failure: invalid credentials"
NO_BASIC = "basic authentication failure: no basic authentication credentials found"
BAD_BASIC = "basic authentication failure: invalid credentials"
TOO_MANY_LOGINS = "basic authentication failure: too many logins under way"
