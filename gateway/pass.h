/* gateway/pass.h - passes as signed tokens: admission decides jti, times and
 * use, this writes and reads them.
 *
 * Context    the worker's thread.
 */
#ifndef GATEWAY_PASS_H
#define GATEWAY_PASS_H

#include "gateway/request.h"

#define GW_JTI_TEXT_LEN 22

/* `jti` as base64url, without a terminating zero. */
void gw_pass_jti(const uint8_t jti[ADM_JTI_LEN], char out[GW_JTI_TEXT_LEN]);
bool gw_pass_jti_parse(struct span text, uint8_t out[ADM_JTI_LEN]);

/* Signs the pass of `account`. 0 with *len, or -errno of jwt_sign. */
NET_MUST int gw_pass_sign(const struct gw_settings *s, const struct gw_sale *sale,
                          struct span account, const struct adm_pass *pass,
                          char out[GW_PASS_TEXT_MAX], size_t *len);

/* Reads r->pass_text: signature, issuer, sale. 0 with r->shown and `claims`;
 * JWT_EXPIRED with both as well; another enum jwt_outcome when it is not a
 * pass of this sale. */
NET_MUST int gw_pass_read(struct gw_request *r, struct jwt_claims *claims);

#endif
