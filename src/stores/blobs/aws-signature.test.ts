/** The examples that AWS publishes for Signature Version 4 with S3 ("Authenticating Requests: Using the Authorization Header"). */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { EMPTY_HASH, type SignedRequest, signRequest, uriEncoded } from './aws-signature.ts';

const CREDENTIALS = {
  accessKey: 'AKIAIOSFODNN7EXAMPLE',
  secretKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  region: 'us-east-1',
};
const AT = Date.parse('2013-05-24T00:00:00Z');
const HOST = 'https://examplebucket.s3.amazonaws.com';

const signed = (request: Partial<SignedRequest> & { readonly path: string }): string => {
  const { path, ...rest } = request;
  const url = new URL(HOST + path);
  return (
    signRequest({ method: 'GET', url, headers: {}, payloadHash: EMPTY_HASH, at: AT, ...rest }, CREDENTIALS)
      .authorization ?? ''
  );
};

describe('a signature', () => {
  it('is that of the published example: GET Object with a range', () => {
    expect(signed({ path: '/test.txt', headers: { range: 'bytes=0-9' } })).toBe(
      'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,' +
        'SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,' +
        'Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
    );
  });

  it('is that of the published example: PUT Object', () => {
    const payloadHash = createHash('sha256').update('Welcome to Amazon S3.').digest('hex');
    const headers = { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' };
    expect(signed({ method: 'PUT', path: '/test%24file.text', headers, payloadHash })).toMatch(
      /Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd$/,
    );
  });

  it('is that of the published example: GET Bucket Lifecycle', () => {
    expect(signed({ path: '/?lifecycle' })).toMatch(
      /Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543$/,
    );
  });

  it('is that of the published example: List Objects', () => {
    expect(signed({ path: '/?max-keys=2&prefix=J' })).toMatch(
      /Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7$/,
    );
  });

  it('writes everything but plain characters as bytes', () => {
    expect(uriEncoded("a b/ü!'()*-._~")).toBe('a%20b%2F%C3%BC%21%27%28%29%2A-._~');
  });
});
