/* net/http11_llhttp.h - Debian's llhttp, whose names of methods are those of ours.
 *
 * Built in its strict mode, and no lenient flag is ever set. Included by the
 * session files of HTTP/1.1 alone.
 */
#ifndef NET_HTTP11_LLHTTP_H
#define NET_HTTP11_LLHTTP_H

#include "net/http.h"

#define HTTP_DELETE LLHTTP_DELETE
#define HTTP_GET LLHTTP_GET
#define HTTP_HEAD LLHTTP_HEAD
#define HTTP_POST LLHTTP_POST
#define HTTP_PUT LLHTTP_PUT
#define HTTP_OPTIONS LLHTTP_OPTIONS
#define HTTP_PATCH LLHTTP_PATCH
#include <llhttp/llhttp.h>
#undef HTTP_DELETE
#undef HTTP_GET
#undef HTTP_HEAD
#undef HTTP_POST
#undef HTTP_PUT
#undef HTTP_OPTIONS
#undef HTTP_PATCH

#endif
