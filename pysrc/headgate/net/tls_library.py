"""Sets the TLS library up when it is imported.

The first context of a process has OpenSSL read its tables of algorithms, which takes 2 ms, and each later one 0.1 ms.
What expects TLS backends imports this module before it compiles them (`headgate.pipeline.modules`): a template before
it forks, a worker beside its loop.
"""

from __future__ import annotations

from headgate_engine.tls.context import TlsContext

TlsContext(server=False)
