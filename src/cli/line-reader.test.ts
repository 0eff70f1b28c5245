/** Typed lines: one at a time, kept when they come together, ended by the end of input or a withdrawal. */
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { LineReader } from './line-reader.ts';

const never = new AbortController().signal;

describe('LineReader', () => {
  it('gives lines one by one, also when they arrive together or in pieces', async () => {
    const stream = new PassThrough();
    const lines = new LineReader(stream);
    stream.write('one\r\ntwo\nth');
    expect(await lines.next(never)).toBe('one');
    expect(await lines.next(never)).toBe('two');
    const third = lines.next(never);
    stream.write(Buffer.from('reé\n').subarray(0, 3));
    stream.write(Buffer.from('reé\n').subarray(3));
    expect(await third).toBe('threé');
  });

  it('gives null when the input ends', async () => {
    const stream = new PassThrough();
    const lines = new LineReader(stream);
    const next = lines.next(never);
    stream.end();
    expect(await next).toBeNull();
    expect(await lines.next(never)).toBeNull();
  });

  it('gives null when the question is withdrawn', async () => {
    const controller = new AbortController();
    const next = new LineReader(new PassThrough()).next(controller.signal);
    controller.abort();
    expect(await next).toBeNull();
  });
});
