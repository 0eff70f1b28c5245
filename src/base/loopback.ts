/** Whether a name or address means this machine, whoever says it. Names that only begin like one do not. */

/** For the host of a URL or an address to listen on. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}
