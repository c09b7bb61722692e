"""Features of the Gateway API that the status of a GatewayClass claims: those whose conformance tests pass.

https://gateway-api.sigs.k8s.io/geps/gep-2162/. A feature is added here when ci/cluster-lab/conformance.sh shows it.
"""

from __future__ import annotations

from typing import Final

# In the order of the alphabet, as the API asks.
SUPPORTED: Final = (
    "GRPCRoute",
    "Gateway",
    "HTTPRoute",
    "ReferenceGrant",
)
