/**
 * Node's, OpenSSL's and undici's names for network trouble, sorted into our codes (SPEC S5.1). A name not known here is
 * NETWORK_FAILED, which is retried: only a certificate or a URL that is wrong is certain to stay wrong.
 */

/** The codes that network trouble can get. */
export type NetworkFailure =
  | {
      readonly class: 'transport';
      readonly code:
        | 'DNS_FAILED'
        | 'CONNECTION_REFUSED'
        | 'CONNECTION_RESET'
        | 'NETWORK_FAILED'
        | 'TLS_FAILED'
        | 'CERTIFICATE_INVALID'
        | 'BAD_URL';
    }
  | { readonly class: 'timeout'; readonly code: 'CONNECTION_TIMEOUT' };

const CERTIFICATE_CODES = [
  'SELF_SIGNED_CERT',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_DECRYPT_CERT_SIGNATURE',
  'UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY',
  'UNABLE_TO_GET_CRL',
  'ERROR_IN_CERT',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
  'HOSTNAME_MISMATCH',
  'CERT_',
  'CRL_',
  'ERR_TLS_CERT_',
].join('|');

/** The first pattern that fits decides. */
const PATTERNS: readonly (readonly [RegExp, NetworkFailure])[] = [
  [/TIMEDOUT$|TIMEOUT$/, { class: 'timeout', code: 'CONNECTION_TIMEOUT' }],
  [/^ECONNREFUSED$/, { class: 'transport', code: 'CONNECTION_REFUSED' }],
  [/^(ECONNRESET|ECONNABORTED|EPIPE|UND_ERR_SOCKET)$/, { class: 'transport', code: 'CONNECTION_RESET' }],
  [/^(ENOTFOUND$|EAI_)/, { class: 'transport', code: 'DNS_FAILED' }],
  [new RegExp(`^(${CERTIFICATE_CODES})`), { class: 'transport', code: 'CERTIFICATE_INVALID' }],
  [/^(ERR_TLS_|ERR_SSL_|EPROTO$)/, { class: 'transport', code: 'TLS_FAILED' }],
  [/^ERR_INVALID_(URL|PROTOCOL)$/, { class: 'transport', code: 'BAD_URL' }],
];

/** The class and code of an error code that the network stack gave. */
export function classifyNetworkCode(code: string): NetworkFailure {
  const found = PATTERNS.find(([pattern]) => pattern.test(code));
  return found?.[1] ?? { class: 'transport', code: 'NETWORK_FAILED' };
}
