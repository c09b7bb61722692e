"""The format of the metrics page."""

from __future__ import annotations

import pytest

from headgate.admin.metrics_accept import Page, wanted
from headgate.admin.metrics_protobuf import CONTENT_TYPE


@pytest.mark.parametrize(
    ("accept", "page"),
    [
        ("", Page.TEXT),
        ("*/*", Page.TEXT),
        ("text/plain", Page.TEXT),
        ("application/json", Page.TEXT),
        (CONTENT_TYPE, Page.PROTOBUF),
        ("application/protobuf", Page.PROTOBUF),
        ("Application/X-Protobuf", Page.PROTOBUF),
        # Prometheus with native histograms, and without.
        ("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,"
         "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2", Page.PROTOBUF),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2", Page.OPENMETRICS),
        ("application/openmetrics-text;q=0.9,application/protobuf;q=0.2,text/plain;q=0.5", Page.OPENMETRICS),
        ("application/openmetrics-text,text/plain", Page.TEXT),
        ("application/protobuf;q=0.5,*/*;q=0.5", Page.TEXT),
        ("application/protobuf;q=0", Page.TEXT),
        ("application/protobuf;q=nan", Page.TEXT),
        ("application/protobuf;q=often", Page.TEXT),
    ],
)  # fmt: skip
def test_the_page_is_what_the_client_prefers(accept: str, page: Page) -> None:
    assert wanted(accept) is page
