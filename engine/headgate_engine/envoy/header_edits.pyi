"""What services want done to fields (HeaderValueOption of
https://www.envoyproxy.io/docs/envoy/latest/api-v3/config/core/v3/base.proto).
"""

class HeaderEdits:
    """What a service wants done to fields."""
