# The functions of OpenSSL that the gateway calls, with prototypes of our own: they are taken at run time from the libssl
# that Python's own `_ssl` has loaded. So the build needs no headers, a wheel fits every OpenSSL 3, and no second copy is
# mapped. A member has the name of its function; the order is that of library.NAMES.

from libc.stdint cimport uint64_t

ctypedef void SSL
ctypedef void SSL_CTX
ctypedef void SSL_SESSION
ctypedef void BIO
ctypedef void X509
ctypedef void EVP_PKEY

# OSSL_PARAM(3).
cdef struct Param:
    const char* key
    unsigned int data_type
    void* data
    size_t data_size
    size_t return_size

ctypedef int (*bio_read_fn)(BIO* bio, char* to, int size) noexcept
ctypedef int (*bio_write_fn)(BIO* bio, const char* data, int size) noexcept
ctypedef long (*bio_ctrl_fn)(BIO* bio, int what, long number, void* pointer) noexcept
ctypedef int (*alpn_select_fn)(SSL* ssl, const unsigned char** out, unsigned char* out_len,
                               const unsigned char* offered, unsigned int offered_len, void* argument) noexcept
ctypedef int (*ticket_key_fn)(SSL* ssl, unsigned char* name, unsigned char* iv, void* cipher, void* mac,
                              int encrypt) noexcept
ctypedef int (*new_session_fn)(SSL* ssl, SSL_SESSION* session) noexcept
ctypedef int (*verify_peer_fn)(void* store, void* argument) noexcept

cdef struct Functions:
    unsigned long (*OpenSSL_version_num)() noexcept
    const char* (*OpenSSL_version)(int what) noexcept
    # -- contexts
    const void* (*TLS_server_method)() noexcept
    const void* (*TLS_client_method)() noexcept
    SSL_CTX* (*SSL_CTX_new)(const void* method) noexcept
    void (*SSL_CTX_free)(SSL_CTX* ctx) noexcept
    long (*SSL_CTX_ctrl)(SSL_CTX* ctx, int what, long number, void* pointer) noexcept
    uint64_t (*SSL_CTX_set_options)(SSL_CTX* ctx, uint64_t options) noexcept
    int (*SSL_CTX_use_certificate)(SSL_CTX* ctx, X509* certificate) noexcept
    int (*SSL_CTX_use_PrivateKey)(SSL_CTX* ctx, EVP_PKEY* key) noexcept
    int (*SSL_CTX_check_private_key)(SSL_CTX* ctx) noexcept
    int (*SSL_CTX_set_cipher_list)(SSL_CTX* ctx, const char* names) noexcept
    int (*SSL_CTX_set_ciphersuites)(SSL_CTX* ctx, const char* names) noexcept
    void (*SSL_CTX_set_alpn_select_cb)(SSL_CTX* ctx, alpn_select_fn choose, void* argument) noexcept
    int (*SSL_CTX_set_alpn_protos)(SSL_CTX* ctx, const unsigned char* names, unsigned int length) noexcept
    void (*SSL_CTX_set_verify)(SSL_CTX* ctx, int mode, void* callback) noexcept
    void (*SSL_CTX_set_cert_verify_callback)(SSL_CTX* ctx, verify_peer_fn verify, void* argument) noexcept
    int (*SSL_CTX_set_session_id_context)(SSL_CTX* ctx, const unsigned char* text, unsigned int length) noexcept
    int (*SSL_CTX_set_tlsext_ticket_key_evp_cb)(SSL_CTX* ctx, ticket_key_fn find) noexcept
    void* (*SSL_CTX_get_cert_store)(SSL_CTX* ctx) noexcept
    void (*SSL_CTX_set1_cert_store)(SSL_CTX* ctx, void* store) noexcept
    int (*SSL_CTX_add_client_CA)(SSL_CTX* ctx, X509* certificate) noexcept
    void (*SSL_CTX_sess_set_new_cb)(SSL_CTX* ctx, new_session_fn keep) noexcept
    int (*SSL_CTX_set_ex_data)(SSL_CTX* ctx, int index, void* pointer) noexcept
    void* (*SSL_CTX_get_ex_data)(SSL_CTX* ctx, int index) noexcept
    # -- connections
    SSL* (*SSL_new)(SSL_CTX* ctx) noexcept
    void (*SSL_free)(SSL* ssl) noexcept
    void (*SSL_set_bio)(SSL* ssl, BIO* input, BIO* output) noexcept
    void (*SSL_set_accept_state)(SSL* ssl) noexcept
    void (*SSL_set_connect_state)(SSL* ssl) noexcept
    int (*SSL_do_handshake)(SSL* ssl) noexcept
    int (*SSL_read)(SSL* ssl, void* to, int size) noexcept
    int (*SSL_write)(SSL* ssl, const void* data, int size) noexcept
    int (*SSL_shutdown)(SSL* ssl) noexcept
    void (*SSL_set_shutdown)(SSL* ssl, int mode) noexcept
    int (*SSL_get_error)(const SSL* ssl, int result) noexcept
    int (*SSL_has_pending)(const SSL* ssl) noexcept
    long (*SSL_ctrl)(SSL* ssl, int what, long number, void* pointer) noexcept
    SSL_CTX* (*SSL_get_SSL_CTX)(const SSL* ssl) noexcept
    int (*SSL_version)(const SSL* ssl) noexcept
    const char* (*SSL_get_version)(const SSL* ssl) noexcept
    const void* (*SSL_get_current_cipher)(const SSL* ssl) noexcept
    const char* (*SSL_CIPHER_get_name)(const void* cipher) noexcept
    void (*SSL_get0_alpn_selected)(const SSL* ssl, const unsigned char** name, unsigned int* length) noexcept
    BIO* (*SSL_get_rbio)(const SSL* ssl) noexcept
    int (*SSL_session_reused)(const SSL* ssl) noexcept
    X509* (*SSL_get1_peer_certificate)(const SSL* ssl) noexcept
    long (*SSL_get_verify_result)(const SSL* ssl) noexcept
    void* (*SSL_get0_param)(SSL* ssl) noexcept
    int (*SSL_set_session)(SSL* ssl, SSL_SESSION* session) noexcept
    void (*SSL_SESSION_free)(SSL_SESSION* session) noexcept
    # -- bytes in and out
    int (*BIO_get_new_index)() noexcept
    void* (*BIO_meth_new)(int kind, const char* name) noexcept
    int (*BIO_meth_set_read)(void* method, bio_read_fn read) noexcept
    int (*BIO_meth_set_write)(void* method, bio_write_fn write) noexcept
    int (*BIO_meth_set_ctrl)(void* method, bio_ctrl_fn control) noexcept
    BIO* (*BIO_new)(const void* method) noexcept
    BIO* (*BIO_new_mem_buf)(const void* data, int size) noexcept
    int (*BIO_free)(BIO* bio) noexcept
    void (*BIO_set_data)(BIO* bio, void* pointer) noexcept
    void* (*BIO_get_data)(BIO* bio) noexcept
    void (*BIO_set_init)(BIO* bio, int ready) noexcept
    void (*BIO_set_flags)(BIO* bio, int flags) noexcept
    void (*BIO_clear_flags)(BIO* bio, int flags) noexcept
    # -- certificates and keys
    X509* (*PEM_read_bio_X509)(BIO* bio, X509** into, void* callback, void* argument) noexcept
    EVP_PKEY* (*PEM_read_bio_PrivateKey)(BIO* bio, EVP_PKEY** into, void* callback, void* argument) noexcept
    void (*X509_free)(X509* certificate) noexcept
    void (*EVP_PKEY_free)(EVP_PKEY* key) noexcept
    int (*i2d_X509)(const X509* certificate, unsigned char** out) noexcept
    void* (*X509_STORE_new)() noexcept
    void (*X509_STORE_free)(void* store) noexcept
    int (*X509_STORE_add_cert)(void* store, X509* certificate) noexcept
    int (*X509_STORE_set_flags)(void* store, unsigned long flags) noexcept
    int (*X509_STORE_set_default_paths)(void* store) noexcept nogil
    void (*X509_VERIFY_PARAM_set_hostflags)(void* param, unsigned int flags) noexcept
    int (*X509_VERIFY_PARAM_set1_host)(void* param, const char* name, size_t length) noexcept
    int (*X509_VERIFY_PARAM_set1_ip_asc)(void* param, const char* address) noexcept
    const char* (*X509_verify_cert_error_string)(long number) noexcept
    int (*X509_verify_cert)(void* store) noexcept
    int (*X509_STORE_CTX_get_error)(const void* store) noexcept
    void (*X509_STORE_CTX_set_error)(void* store, int number) noexcept
    # -- tickets
    const void* (*EVP_aes_256_cbc)() noexcept
    int (*EVP_EncryptInit_ex)(void* ctx, const void* cipher, void* engine, const unsigned char* key,
                              const unsigned char* iv) noexcept
    int (*EVP_DecryptInit_ex)(void* ctx, const void* cipher, void* engine, const unsigned char* key,
                              const unsigned char* iv) noexcept
    int (*EVP_MAC_CTX_set_params)(void* ctx, const Param* params) noexcept
    int (*RAND_bytes)(unsigned char* to, int size) noexcept
    # -- errors
    unsigned long (*ERR_get_error)() noexcept
    unsigned long (*ERR_peek_error)() noexcept
    void (*ERR_clear_error)() noexcept
    const char* (*ERR_reason_error_string)(unsigned long error) noexcept
    void (*CRYPTO_free)(void* memory, const char* file, int line) noexcept

# Filled by load(); a call before that ends the process.
cdef Functions openssl

# Finds the functions once. Raises TlsError where there is no OpenSSL 3.
cdef int load() except -1
# The reasons in OpenSSL's queue of errors, which is empty behind it; "" without one.
cdef str take_reasons()
