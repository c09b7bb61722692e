"""OpenSSL, as Python has loaded it; see library.pxd."""

from posix.dlfcn cimport RTLD_NOW, dlopen, dlsym

from headgate_engine.errors import TlsError

import re

# Of openssl, in its order. Function pointers have the size of a pointer (POSIX, dlsym(3)).
NAMES = (
    "OpenSSL_version_num", "OpenSSL_version",
    "TLS_server_method", "TLS_client_method", "SSL_CTX_new", "SSL_CTX_free", "SSL_CTX_ctrl", "SSL_CTX_set_options",
    "SSL_CTX_use_certificate", "SSL_CTX_use_PrivateKey", "SSL_CTX_check_private_key", "SSL_CTX_set_cipher_list",
    "SSL_CTX_set_ciphersuites", "SSL_CTX_set_alpn_select_cb", "SSL_CTX_set_alpn_protos", "SSL_CTX_set_verify",
    "SSL_CTX_set_cert_verify_callback",
    "SSL_CTX_set_session_id_context", "SSL_CTX_set_tlsext_ticket_key_evp_cb", "SSL_CTX_get_cert_store",
    "SSL_CTX_set1_cert_store", "SSL_CTX_add_client_CA", "SSL_CTX_sess_set_new_cb", "SSL_CTX_set_ex_data",
    "SSL_CTX_get_ex_data",
    "SSL_new", "SSL_free", "SSL_set_bio", "SSL_set_accept_state", "SSL_set_connect_state", "SSL_do_handshake",
    "SSL_read", "SSL_write", "SSL_shutdown", "SSL_set_shutdown", "SSL_get_error", "SSL_has_pending", "SSL_ctrl", "SSL_get_SSL_CTX",
    "SSL_version", "SSL_get_version", "SSL_get_current_cipher", "SSL_CIPHER_get_name", "SSL_get0_alpn_selected",
    "SSL_get_rbio", "SSL_session_reused", "SSL_get1_peer_certificate", "SSL_get_verify_result", "SSL_get0_param", "SSL_set_session",
    "SSL_SESSION_free",
    "BIO_get_new_index", "BIO_meth_new", "BIO_meth_set_read", "BIO_meth_set_write", "BIO_meth_set_ctrl", "BIO_new",
    "BIO_new_mem_buf", "BIO_free", "BIO_set_data", "BIO_get_data", "BIO_set_init", "BIO_set_flags", "BIO_clear_flags",
    "PEM_read_bio_X509", "PEM_read_bio_PrivateKey", "X509_free", "EVP_PKEY_free", "i2d_X509", "X509_STORE_new",
    "X509_STORE_free", "X509_STORE_add_cert", "X509_STORE_set_flags", "X509_STORE_set_default_paths",
    "X509_VERIFY_PARAM_set_hostflags", "X509_VERIFY_PARAM_set1_host", "X509_VERIFY_PARAM_set1_ip_asc",
    "X509_verify_cert_error_string", "X509_verify_cert", "X509_STORE_CTX_get_error", "X509_STORE_CTX_set_error",
    "EVP_aes_256_cbc", "EVP_EncryptInit_ex", "EVP_DecryptInit_ex", "EVP_MAC_CTX_set_params", "RAND_bytes",
    "ERR_get_error", "ERR_peek_error", "ERR_clear_error", "ERR_reason_error_string", "CRYPTO_free",
)
# Of Debian, Fedora and Alpine, for a Python that has OpenSSL built in and keeps its names to itself.
SYSTEM_LIBRARY = b"libssl.so.3"

cdef enum:
    OLDEST = 0x30000000
    # Errors that are told; what a library reports behind these says nothing new.
    MOST_REASONS = 2

cdef bint loaded = False


cdef bint _find(void* handle) except -1:
    """Looks all functions up; False if one is missing."""
    cdef void** table = <void**>&openssl
    cdef Py_ssize_t i
    for i, name in enumerate(NAMES):
        table[i] = dlsym(handle, name.encode())
        if table[i] == NULL:
            return False
    return True


cdef int load() except -1:
    global loaded
    cdef void* handle
    if loaded:
        return 0
    if sizeof(Functions) != len(NAMES) * sizeof(void*):
        raise AssertionError("the table of functions and their names differ in length")
    import _ssl

    places = [_ssl.__file__.encode()] if getattr(_ssl, "__file__", None) else []
    for place in [*places, b"", SYSTEM_LIBRARY]:
        # An object's own symbols and those of what it depends on; none: the program itself.
        handle = dlopen(<const char*>place if place else NULL, RTLD_NOW)
        if handle != NULL and _find(handle) and openssl.OpenSSL_version_num() >= OLDEST:
            loaded = True
            return 0
    raise TlsError("TLS needs OpenSSL 3 as a shared library, and neither Python's own ssl module nor the system has one")


def version():
    load()
    return re.sub(r"^(OpenSSL [^ ]+).*", r"\1", openssl.OpenSSL_version(0).decode("ascii", "replace"))


cdef str take_reasons():
    cdef list found = []
    cdef unsigned long error
    cdef const char* text
    while True:
        error = openssl.ERR_get_error()
        if error == 0:
            return ", ".join(found)
        text = openssl.ERR_reason_error_string(error)
        word = "error %x" % error if text == NULL else (<bytes>text).decode("ascii", "replace")
        if word not in found and len(found) < MOST_REASONS:
            found.append(word)
