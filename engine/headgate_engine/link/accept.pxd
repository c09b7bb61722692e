# Accepting connections from a socket that several workers listen on, so that each of them gets its share.
#
# The listening socket is in the epoll set of every worker, with EPOLLEXCLUSIVE: a connection wakes up one of the workers
# that wait for something to do. That worker accepts it, unless another one has fewer connections: then it calls that one,
# over an eventfd, and looks after the connection 5 ms later. A worker that is busy or stopped is not woken up, and one that
# does not hear a call is passed over (shared.loads). One that ends or is stopped between waking up and accepting takes the
# wake-up with it: so each worker looks after all ports once a second.
#
# uvloop has no such thing, but its loop stands on epoll, and libuv looks its handles up by the descriptor in the data of an
# event. So a descriptor of ours is added with another one's number: an event of the listening socket calls the reader of
# `ready_fd`, and an event of `accept_fd`, which is always readable and armed once, makes libuv accept one connection.

from headgate_engine.link.worker cimport Worker
from headgate_engine.shared.loads cimport WorkerLoads

from libc.stdint cimport int64_t, uint64_t

cdef class SharedAccept:
    cdef Worker worker
    cdef WorkerLoads loads
    cdef tuple wake_fds              # eventfds of all workers
    cdef dict ports                  # listening descriptor -> SharedPort
    cdef int epoll_fd
    cdef object timer                # the next look after all ports
    cdef int call(self, int worker, uint64_t port, int64_t now_ns) except -1

cdef class SharedPort:
    cdef SharedAccept accept
    cdef readonly int fd             # the listening socket
    cdef uint64_t bit                # of this port in a call
    cdef object factory              # makes a connection of the worker
    cdef object take                 # accepts a connection; None: libuv does
    cdef int server_fd               # the descriptor that libuv knows the listening socket by, -1: none
    cdef int ready_fd, accept_fd
    cdef object timer                # when a connection that was left to another worker is looked after
    cdef bint armed                  # libuv has been made to accept, and nothing is known of what came of it
    cdef int left                    # times that connections were left to others since one was accepted
    cdef int accept_waiting(self, bint leave) except -1
    cdef int _leave(self) except -1
