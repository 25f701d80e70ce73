/* OpenSSL, loaded when the first key needs it (base/library.h): a program that is linked with it reads 1.7 MB at every
 * start, and takes longer for that than for the rest of its start.
 *
 * Called by key.c and tls.c. Proved by tests/unit/test_key.c.
 */
#ifndef RBT_RUNTIME_CLUSTER_OPENSSL_H
#define RBT_RUNTIME_CLUSTER_OPENSSL_H

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>

#include "base/library.h"

#define RBT_SSL_FUNCTIONS(F)                                                                                           \
    F(BIO_clear_flags)                                                                                                 \
    F(BIO_free)                                                                                                        \
    F(BIO_get_data)                                                                                                    \
    F(BIO_meth_free)                                                                                                   \
    F(BIO_meth_new)                                                                                                    \
    F(BIO_meth_set_ctrl)                                                                                               \
    F(BIO_meth_set_read)                                                                                               \
    F(BIO_meth_set_write)                                                                                              \
    F(BIO_new)                                                                                                         \
    F(BIO_set_data)                                                                                                    \
    F(BIO_set_flags)                                                                                                   \
    F(BIO_set_init)                                                                                                    \
    F(CRYPTO_memcmp)                                                                                                   \
    F(ERR_clear_error)                                                                                                 \
    F(ERR_error_string_n)                                                                                              \
    F(ERR_peek_error)                                                                                                  \
    F(ERR_peek_last_error)                                                                                             \
    F(ERR_reason_error_string)                                                                                         \
    F(EVP_MD_is_a)                                                                                                     \
    F(EVP_sha256)                                                                                                      \
    F(HMAC)                                                                                                            \
    F(SSL_CIPHER_find)                                                                                                 \
    F(SSL_CTX_ctrl)                                                                                                    \
    F(SSL_CTX_free)                                                                                                    \
    F(SSL_CTX_new)                                                                                                     \
    F(SSL_CTX_set_ciphersuites)                                                                                        \
    F(SSL_CTX_set_num_tickets)                                                                                         \
    F(SSL_CTX_set_options)                                                                                             \
    F(SSL_CTX_set_psk_find_session_callback)                                                                           \
    F(SSL_CTX_set_psk_use_session_callback)                                                                            \
    F(SSL_SESSION_free)                                                                                                \
    F(SSL_SESSION_new)                                                                                                 \
    F(SSL_SESSION_set1_master_key)                                                                                     \
    F(SSL_SESSION_set_cipher)                                                                                          \
    F(SSL_SESSION_set_protocol_version)                                                                                \
    F(SSL_do_handshake)                                                                                                \
    F(SSL_free)                                                                                                        \
    F(SSL_get_error)                                                                                                   \
    F(SSL_get_ex_data)                                                                                                 \
    F(SSL_has_pending)                                                                                                 \
    F(SSL_key_update)                                                                                                  \
    F(SSL_new)                                                                                                         \
    F(SSL_read_ex)                                                                                                     \
    F(SSL_session_reused)                                                                                              \
    F(SSL_set_accept_state)                                                                                            \
    F(SSL_set_bio)                                                                                                     \
    F(SSL_set_connect_state)                                                                                           \
    F(SSL_set_ex_data)                                                                                                 \
    F(SSL_set_verify)                                                                                                  \
    F(SSL_shutdown)                                                                                                    \
    F(SSL_write_ex)                                                                                                    \
    F(TLS_method)

RBT_LIBRARY_DECLARE(rbt_ssl, RBT_SSL_FUNCTIONS);

#endif
