# Makes an exchange for each request of the connections of a worker: what connects them without knowing requests.

from headgate_engine.link.contract cimport RequestFactory
from headgate_engine.link.worker cimport Worker

cdef class ExchangeFactory(RequestFactory):
    cdef Worker worker
