/* gateway/account.h - who is asking: the shop's token, or a guest.
 *
 * Context    the worker's thread.
 */
#ifndef GATEWAY_ACCOUNT_H
#define GATEWAY_ACCOUNT_H

#include "gateway/request.h"

/* `Authorization: Bearer`, else the configured cookie; p NULL: none. */
struct span gw_account_token(const struct http_request *request, const struct conf_gateway *conf);

/* Verifies r->token and fills the account; false when it is bad. */
bool gw_account_by_token(struct gw_request *r);

/* The account is `sub`: a pass names it. */
void gw_account_set(struct gw_request *r, struct span sub);

/* A guest whom cookie or ticket names; false when neither does. */
bool gw_account_by_guest(struct gw_request *r);

/* A guest never seen before. */
void gw_account_new_guest(struct gw_request *r);

#endif
