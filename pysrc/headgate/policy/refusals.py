"""What `jwtAuth`, `apiKey` and `basicAuth` refuse with, in a module of its own: the error table has it where none of
them is configured.
"""

from __future__ import annotations

UNAUTHORIZED = b'{"error":"unauthorized","error_description":"JWT token required"}'
REASON = "JwtAuth"
NO_API_KEY = "api key authentication failure: no API Key found"
BAD_API_KEY = "api key authentication failure: invalid credentials"
EXPIRED_KEY = "api key authentication failure: the key has expired"
REVOKED_KEY = "api key authentication failure: the key was revoked"
KEY_ELSEWHERE = "the api key is not for this route"
UNPRICED = "the api key has a limit of money, and the model has no price"
STORELESS = "the limits of the api key cannot be asked for"
NO_BASIC = "basic authentication failure: no basic authentication credentials found"
BAD_BASIC = "basic authentication failure: invalid credentials"
TOO_MANY_LOGINS = "basic authentication failure: too many logins under way"
