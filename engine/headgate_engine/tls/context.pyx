"""Contexts of TLS; see context.pxd."""

from headgate_engine.clock cimport wall_ns
from headgate_engine.tls.library cimport (
    BIO, EVP_PKEY, SSL, SSL_CTX, SSL_SESSION, X509, Param, load, openssl, take_reasons)
from headgate_engine.tls.tickets cimport TicketKey, TicketKeys

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport uint64_t
from libc.string cimport memcmp, memcpy

import os

from headgate_engine.errors import TlsError
from headgate_engine.tls import library, names as known

# Numbers of the library's interface (openssl/ssl.h, x509_vfy.h, core.h of OpenSSL 3), which does not change them.
cdef enum:
    CTRL_EXTRA_CHAIN_CERT = 14
    CTRL_MODE = 33
    CTRL_SESS_CACHE_MODE = 44
    CTRL_SET_GROUPS_LIST = 92
    CTRL_CHAIN_CERT = 89
    CTRL_SET_MIN_PROTO_VERSION = 123
    CTRL_SET_MAX_PROTO_VERSION = 124
    MODE_ENABLE_PARTIAL_WRITE = 0x1
    MODE_ACCEPT_MOVING_WRITE_BUFFER = 0x2
    MODE_RELEASE_BUFFERS = 0x10
    SESS_CACHE_OFF = 0
    SESS_CACHE_CLIENT = 0x1
    SESS_CACHE_NO_INTERNAL = 0x300
    VERIFY_PEER = 0x1
    VERIFY_FAIL_IF_NO_PEER_CERT = 0x2
    TLSEXT_ERR_OK = 0
    TLSEXT_ERR_ALERT_FATAL = 2
    PARAM_UTF8_STRING = 4
    PARAM_OCTET_STRING = 5
    MAC_KEY_SIZE = 32
    TLS_1_3 = 0x0304
    V_ERR_APPLICATION_VERIFICATION = 50

cdef uint64_t OP_NO_COMPRESSION = 1 << 17
cdef uint64_t OP_NO_TICKET = 1 << 14
cdef uint64_t OP_CIPHER_SERVER_PREFERENCE = 1 << 22
cdef uint64_t OP_NO_RENEGOTIATION = 1 << 30
cdef unsigned long V_FLAG_PARTIAL_CHAIN = 0x80000

# The roots of the system, which all contexts share: parsing them takes 10 ms and more. stamp: of the files they are from.
cdef void* system_store = NULL
cdef object system_stamp = None
# Key exchange groups (tls.names) to whether the library has them.
cdef dict supported_groups = {}


cdef int _fail(str what) except -1:
    reasons = take_reasons()
    raise TlsError(f"{what}: {reasons}" if reasons else what)


cdef BIO* _open(bytes pem) except NULL:
    cdef BIO* bio = openssl.BIO_new_mem_buf(PyBytes_AS_STRING(pem), <int>len(pem))
    if bio == NULL:
        raise MemoryError()
    return bio


cdef int _choose_alpn(SSL* ssl, const unsigned char** out, unsigned char* out_len, const unsigned char* offered,
                      unsigned int offered_len, void* argument) noexcept:
    """The first of our protocols that the client offers. Without one the handshake fails (RFC 7301 section 3.2)."""
    cdef const unsigned char* ours = <const unsigned char*>argument
    cdef unsigned int at
    while ours[0]:
        at = 0
        while at < offered_len and at + 1 + offered[at] <= offered_len:
            if offered[at] == ours[0] and memcmp(offered + at + 1, ours + 1, ours[0]) == 0:
                out[0] = offered + at + 1
                out_len[0] = ours[0]
                return TLSEXT_ERR_OK
            at += 1 + offered[at]
        ours += 1 + ours[0]
    return TLSEXT_ERR_ALERT_FATAL


cdef int _ticket_key(SSL* ssl, unsigned char* name, unsigned char* iv, void* cipher, void* mac, int encrypt) noexcept:
    """Of SSL_CTX_set_tlsext_ticket_key_evp_cb(3): 1: this key, 2: this one, and the client gets a new ticket, 0: none."""
    cdef TlsContext context = <TlsContext>openssl.SSL_CTX_get_ex_data(openssl.SSL_get_SSL_CTX(ssl), 0)
    cdef TicketKey* key
    cdef Param[3] params
    cdef int answer = 1
    try:
        context.tickets.advance(wall_ns() // 1000000000)
    except Exception:
        return 0
    if encrypt:
        key = &context.tickets.current
        memcpy(name, key.name, 16)
        if openssl.RAND_bytes(iv, 16) != 1:
            return -1
    else:
        key = context.tickets.find(name)
        if key == NULL:
            return 0
        # A ticket of TLS 1.3 is used once: the client needs another one (RFC 8446 appendix C.4).
        if key != &context.tickets.current or openssl.SSL_version(ssl) == TLS_1_3:
            answer = 2
    params[0].key, params[0].data_type = b"key", PARAM_OCTET_STRING
    params[0].data, params[0].data_size, params[0].return_size = key.mac, MAC_KEY_SIZE, 0
    params[1].key, params[1].data_type = b"digest", PARAM_UTF8_STRING
    params[1].data, params[1].data_size, params[1].return_size = <void*><const char*>b"SHA256", 6, 0
    params[2].key, params[2].data_type, params[2].data, params[2].data_size, params[2].return_size = NULL, 0, NULL, 0, 0
    if openssl.EVP_MAC_CTX_set_params(mac, params) != 1:
        return -1
    if encrypt:
        return 1 if openssl.EVP_EncryptInit_ex(cipher, openssl.EVP_aes_256_cbc(), NULL, key.cipher, iv) == 1 else -1
    return answer if openssl.EVP_DecryptInit_ex(cipher, openssl.EVP_aes_256_cbc(), NULL, key.cipher, iv) == 1 else -1


cdef int _keep_session(SSL* ssl, SSL_SESSION* session) noexcept:
    """A server has sent a ticket: the latest one is kept (1: the reference is ours)."""
    cdef TlsPipe* pipe = <TlsPipe*>openssl.BIO_get_data(openssl.SSL_get_rbio(ssl))
    cdef KeptSession kept
    if pipe == NULL or pipe.kept == NULL:
        return 0
    kept = <KeptSession>pipe.kept
    if kept.session != NULL:
        openssl.SSL_SESSION_free(kept.session)
    kept.session = session
    return 1


cdef int _admit_strangers(void* store, void* argument) noexcept:
    """Of SSL_CTX_set_cert_verify_callback(3): verifies as ever, and goes on in any case. What was wrong stays in the result of
    the connection and of its session (SSL_get_verify_result(3))."""
    if openssl.X509_verify_cert(store) != 1:
        if openssl.X509_STORE_CTX_get_error(store) == 0:
            openssl.X509_STORE_CTX_set_error(store, V_ERR_APPLICATION_VERIFICATION)
        openssl.ERR_clear_error()
    return 1


def _stamp_of_roots():
    """Return what changes with the roots of the system: when their file and their folder were written."""
    import ssl

    found = ssl.get_default_verify_paths()
    stamps = []
    for place in (os.environ.get(found.openssl_cafile_env, found.openssl_cafile),
                  os.environ.get(found.openssl_capath_env, found.openssl_capath)):
        try:
            status = os.stat(place)
        except OSError:
            stamps.append((place, 0, 0, 0))
        else:
            stamps.append((place, status.st_mtime_ns, status.st_size, status.st_ino))
    return stamps


def read_system_roots():
    global system_store, system_stamp
    cdef void* store
    cdef void* before
    load()
    stamp = _stamp_of_roots()
    if system_store != NULL and stamp == system_stamp:
        return
    store = openssl.X509_STORE_new()
    if store == NULL:
        raise MemoryError()
    with nogil:
        openssl.X509_STORE_set_default_paths(store)
    openssl.ERR_clear_error()          # there may be none
    # Another thread may have been faster; contexts hold a reference of their own.
    before, system_store, system_stamp = system_store, store, stamp
    if before != NULL:
        openssl.X509_STORE_free(before)


cdef class KeptSession:
    def __dealloc__(self):
        if self.session != NULL:
            openssl.SSL_SESSION_free(self.session)


def supports_group(name):
    found = supported_groups.get(name)
    if found is None:
        found = supported_groups[name] = _asked_for_group(known.GROUPS[name].encode())
    return found


cdef bint _asked_for_group(bytes text) except -1:
    cdef SSL_CTX* ctx
    load()
    ctx = openssl.SSL_CTX_new(openssl.TLS_server_method())
    if ctx == NULL:
        raise MemoryError()
    try:
        return openssl.SSL_CTX_ctrl(ctx, CTRL_SET_GROUPS_LIST, 0, PyBytes_AS_STRING(text)) == 1
    finally:
        openssl.SSL_CTX_free(ctx)
        openssl.ERR_clear_error()


cdef class TlsContext:
    """TLS settings, with certificates and keys in PEM.

    server: of a listener. cert, key: the chain, the leaf first, and its key; a client may have none. roots: who signs the
    peer's certificate, which is then demanded; None: nobody is asked for one. system_roots: those of the system
    instead, see trust_system(). strangers: a server with roots admits clients without a certificate, or with one that no
    root has signed, and takes neither for verified.
    least, most: versions. suites, groups: names of tls.names in the order of preference; without suites, AES-GCM; without
    groups, all that the library has. alpn: protocols. identity: sessions are resumed only among contexts with the same
    one. tickets: keys of session tickets; without them a server resumes nothing.

    Raises TlsError for what the library refuses.
    """

    def __init__(self, *, bint server, bytes cert=None, bytes key=None, bytes roots=None, bint system_roots=False,
                 bint strangers=False, str least="TLS_V1_2", str most="TLS_V1_3", tuple suites=(), tuple groups=(),
                 tuple alpn=(), bytes identity=b"", TicketKeys tickets=None):
        cdef bytes text
        cdef int demanded
        cdef long mode = MODE_ENABLE_PARTIAL_WRITE | MODE_ACCEPT_MOVING_WRITE_BUFFER | MODE_RELEASE_BUFFERS
        if self.ctx != NULL:
            raise ValueError("a context is set up once")
        load()
        openssl.ERR_clear_error()
        self.ctx = openssl.SSL_CTX_new(openssl.TLS_server_method() if server else openssl.TLS_client_method())
        if self.ctx == NULL:
            raise MemoryError()
        self.server = server
        openssl.SSL_CTX_set_ex_data(self.ctx, 0, <void*>self)
        openssl.SSL_CTX_ctrl(self.ctx, CTRL_MODE, mode, NULL)
        openssl.SSL_CTX_set_options(self.ctx, OP_NO_COMPRESSION | OP_NO_RENEGOTIATION)
        self._bound(least, most, suites)
        names = [name for name in groups or known.GROUPS if groups or supports_group(name)]
        for name in names:
            if name not in known.GROUPS:
                raise TlsError(f"{name!r} is no key exchange group")
            if not supports_group(name):
                raise TlsError(f"{library.version()} has no key exchange group {name}")
        text = ":".join(known.GROUPS[name] for name in names).encode()
        if openssl.SSL_CTX_ctrl(self.ctx, CTRL_SET_GROUPS_LIST, 0, PyBytes_AS_STRING(text)) != 1:
            _fail("key exchange groups")
        if cert is not None and key is not None:
            self._use_pair(cert, key)
        elif server:
            raise TlsError("a listener needs a certificate and its key")
        self._set_alpn(alpn)
        self.verified = roots is not None or system_roots
        if roots is not None:
            self._trust(roots)
        self.lacks_roots = system_roots
        if self.verified:
            demanded = VERIFY_FAIL_IF_NO_PEER_CERT if server and not strangers else 0
            openssl.SSL_CTX_set_verify(self.ctx, VERIFY_PEER | demanded, NULL)
            if server and strangers:
                openssl.SSL_CTX_set_cert_verify_callback(self.ctx, _admit_strangers, NULL)
        if not server:
            openssl.SSL_CTX_ctrl(self.ctx, CTRL_SESS_CACHE_MODE, SESS_CACHE_CLIENT | SESS_CACHE_NO_INTERNAL, NULL)
            openssl.SSL_CTX_sess_set_new_cb(self.ctx, _keep_session)
            return
        openssl.SSL_CTX_ctrl(self.ctx, CTRL_SESS_CACHE_MODE, SESS_CACHE_OFF, NULL)
        if tickets is None:
            openssl.SSL_CTX_set_options(self.ctx, OP_NO_TICKET)
        else:
            self.tickets = tickets
            openssl.SSL_CTX_set_tlsext_ticket_key_evp_cb(self.ctx, _ticket_key)
        text = identity[:32]
        openssl.SSL_CTX_set_session_id_context(
            self.ctx, <const unsigned char*>PyBytes_AS_STRING(text), <unsigned int>len(text))

    def __dealloc__(self):
        if self.ctx != NULL:
            openssl.SSL_CTX_free(self.ctx)

    cdef int check(self) except -1:
        if self.ctx == NULL:
            raise ValueError("the context was never set up")
        return 0

    cdef int _bound(self, str least, str most, tuple suites) except -1:
        """Versions and cipher suites. A version of which no suite is listed is switched off."""
        cdef bytes modern, older
        for name in suites:
            if name not in known.SUITES_1_3 and name not in known.SUITES_1_2:
                raise TlsError(f"{name!r} is no cipher suite")
        modern_names = [known.SUITES_1_3[name] for name in suites if name in known.SUITES_1_3]
        older_names = [known.SUITES_1_2[name] for name in suites if name in known.SUITES_1_2]
        if least not in known.VERSIONS or most not in known.VERSIONS:
            raise TlsError(f"no TLS versions: {least} to {most}")
        if suites and not older_names:
            least = "TLS_V1_3"
        if suites and not modern_names:
            most = "TLS_V1_2"
        if known.VERSIONS[least] > known.VERSIONS[most]:
            raise TlsError("no cipher suite is left for the TLS versions that are allowed")
        openssl.SSL_CTX_ctrl(self.ctx, CTRL_SET_MIN_PROTO_VERSION, known.VERSIONS[least], NULL)
        openssl.SSL_CTX_ctrl(self.ctx, CTRL_SET_MAX_PROTO_VERSION, known.VERSIONS[most], NULL)
        modern = ":".join(modern_names or ("TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256")).encode()
        older = ":".join(older_names or [
            name for name in known.SUITES_1_2.values() if "CHACHA" not in name]).encode()
        if openssl.SSL_CTX_set_ciphersuites(self.ctx, modern) != 1 or (
                openssl.SSL_CTX_set_cipher_list(self.ctx, older) != 1):
            _fail("cipher suites")
        if suites:
            openssl.SSL_CTX_set_options(self.ctx, OP_CIPHER_SERVER_PREFERENCE)
        return 0

    cdef int _use_pair(self, bytes cert, bytes key) except -1:
        cdef BIO* bio = _open(cert)
        cdef X509* one
        cdef EVP_PKEY* private
        cdef int count = 0
        cdef int taken
        try:
            while True:
                one = openssl.PEM_read_bio_X509(bio, NULL, NULL, NULL)
                if one == NULL:
                    break
                # Both take a reference of their own.
                if count == 0:
                    taken = openssl.SSL_CTX_use_certificate(self.ctx, one)
                else:
                    taken = <int>openssl.SSL_CTX_ctrl(self.ctx, CTRL_CHAIN_CERT, 1, one)
                openssl.X509_free(one)
                if taken != 1:
                    _fail("the certificate is refused")
                count += 1
        finally:
            openssl.BIO_free(bio)
        openssl.ERR_clear_error()      # the end of the text
        if count == 0:
            raise TlsError("there is no certificate")
        bio = _open(key)
        private = openssl.PEM_read_bio_PrivateKey(bio, NULL, NULL, <void*><const char*>b"")
        openssl.BIO_free(bio)
        if private == NULL:
            openssl.ERR_clear_error()  # parsers quote what they read
            raise TlsError("there is no readable, unencrypted private key")
        taken = openssl.SSL_CTX_use_PrivateKey(self.ctx, private)
        openssl.EVP_PKEY_free(private)
        if taken != 1 or openssl.SSL_CTX_check_private_key(self.ctx) != 1:
            _fail("the key does not belong to the certificate")
        return 0

    cdef int _trust(self, bytes roots) except -1:
        cdef void* store = openssl.SSL_CTX_get_cert_store(self.ctx)
        cdef BIO* bio = _open(roots)
        cdef X509* one
        cdef int count = 0
        cdef bint taken
        try:
            while True:
                one = openssl.PEM_read_bio_X509(bio, NULL, NULL, NULL)
                if one == NULL:
                    break
                taken = openssl.X509_STORE_add_cert(store, one) == 1
                if taken and self.server:
                    taken = openssl.SSL_CTX_add_client_CA(self.ctx, one) == 1
                openssl.X509_free(one)
                if not taken:
                    _fail("a root certificate is refused")
                count += 1
        finally:
            openssl.BIO_free(bio)
        openssl.ERR_clear_error()
        if count == 0:
            raise TlsError("there is no root certificate")
        # Whatever is listed is trusted, an intermediate authority too.
        openssl.X509_STORE_set_flags(store, V_FLAG_PARTIAL_CHAIN)
        return 0

    def trust_system(self):
        self.check()
        if system_store == NULL:
            read_system_roots()
        if self.lacks_roots:
            openssl.SSL_CTX_set1_cert_store(self.ctx, system_store)
            openssl.ERR_clear_error()      # there may be none
            self.lacks_roots = False

    cdef int _set_alpn(self, tuple names) except -1:
        for name in names:
            if not isinstance(name, bytes) or not 0 < len(name) < 256:
                raise TlsError("a protocol name of ALPN has 1 to 255 bytes")
        self.alpn = names
        self.alpn_wire = b"".join(bytes((len(name),)) + name for name in names)
        if not names:
            return 0
        if self.server:
            # A bytes object ends with a zero, which ends the list.
            openssl.SSL_CTX_set_alpn_select_cb(self.ctx, _choose_alpn, PyBytes_AS_STRING(self.alpn_wire))
        elif openssl.SSL_CTX_set_alpn_protos(
                self.ctx, <const unsigned char*>PyBytes_AS_STRING(self.alpn_wire), <unsigned int>len(self.alpn_wire)) != 0:
            _fail("protocol names")
        return 0
