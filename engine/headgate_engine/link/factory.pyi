from headgate_engine.link.contract import RequestFactory
from headgate_engine.link.worker import Worker

class ExchangeFactory(RequestFactory):
    """Makes an exchange for each request of the connections of a worker."""

    def __init__(self, worker: Worker) -> None: ...
