/* Which OpenSSL: that of the headers' major version, as its libssl brings libcrypto. */
#include "runtime/cluster/openssl.h"

#define TEXT(x)    #x
#define TEXT_OF(x) TEXT(x)

RBT_LIBRARY_DEFINE(rbt_ssl, RBT_SSL_FUNCTIONS, "libssl.so." TEXT_OF(OPENSSL_SHLIB_VERSION),
                   "keys and encryption need OpenSSL", "libssl3");
