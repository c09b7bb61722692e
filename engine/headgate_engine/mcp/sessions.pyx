"""Sessions of MCP backends; see sessions.pxd."""

from headgate_engine.clock cimport monotonic_ns


cdef class TargetSession:
    def __init__(self, str name=None, str version=None):
        self.name = name
        self.version = version

    @property
    def name(self):
        return self._name

    @name.setter
    def name(self, str name):
        self.field = None if name is None else name.encode("utf-8", "surrogateescape")
        self._name = name

    @property
    def version(self):
        return self._version

    @version.setter
    def version(self, str version):
        self.version_field = None if version is None else version.encode("utf-8", "surrogateescape")
        self._version = version


cdef class SessionEntry:
    def __init__(self, str id not None, server, double used, str owner not None):
        self.id = id
        self.server = server
        self.used = used
        self.owner = owner


cdef class SessionTable:
    @classmethod
    def __class_getitem__(cls, _kind):       # SessionTable[Session], for type checkers
        return cls

    def __init__(self, clock=None, bint ordered=False):
        self.by_id = {}
        self.clock = clock
        self.ordered = ordered

    cdef double now(self) except -1:
        return monotonic_ns() / 1e9 if self.clock is None else <double>self.clock()

    cdef SessionEntry look_up(self, str session_id, str owner):
        cdef SessionEntry session = self.by_id.get(session_id)
        if session is None or session.owner != owner or session.server.dead:
            return None
        session.used = self.now()
        if self.ordered and session is not self.last:
            self.by_id[session_id] = self.by_id.pop(session_id)
            self.last = session
        return session

    cdef int begin(self, SessionEntry session) except -1:
        session.busy = session.busy + 1
        return 0

    cdef int end(self, SessionEntry session) except -1:
        session.busy = session.busy - 1
        session.used = self.now()
        return 0

    def find(self, str session_id not None, str owner not None=""):
        return self.look_up(session_id, owner)

    def begin_use(self, SessionEntry session not None):
        self.begin(session)

    def end_use(self, SessionEntry session not None):
        self.end(session)

    def put(self, SessionEntry session not None):
        """Registers a session. Returns whether its id is new."""
        cdef bint is_new = session.id not in self.by_id
        self.by_id[session.id] = session
        self.last = None
        return is_new

    def take(self, str session_id not None):
        """Removes and returns a session; None if there is none."""
        cdef SessionEntry session = self.by_id.pop(session_id, None)
        if session is self.last:
            self.last = None
        return session

    def __contains__(self, session_id):
        return session_id in self.by_id

    def __len__(self):
        return len(self.by_id)

    def entries(self):
        """All sessions, least recently used first if the order is kept."""
        return list(self.by_id.values())
