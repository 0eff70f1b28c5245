/** File patterns. */
import { describe, expect, it } from 'vitest';
import { compileGlob } from './glob.ts';

const matches = (pattern: string, ...paths: string[]): boolean[] =>
  paths.map((path) => compileGlob(pattern).matches(path));

describe('compileGlob', () => {
  it('a star and a question mark stay within a name', () => {
    expect(matches('*.txt', 'a.txt', '.txt', 'a.txt.gz', 'b/a.txt')).toEqual([true, true, false, false]);
    expect(matches('a?c', 'abc', 'ac', 'a/c')).toEqual([true, false, false]);
    expect(matches('a*b*c', 'abc', 'axxbyyc', 'axxbyy')).toEqual([true, true, false]);
  });

  it('two stars stand for any folders, also none', () => {
    expect(matches('**/a', 'a', 'x/a', 'x/y/a', 'x/b')).toEqual([true, true, true, false]);
    expect(matches('x/**', 'x/a', 'x/y/a', 'y/a')).toEqual([true, true, false]);
    expect(matches('x/**/z', 'x/z', 'x/y/z', 'x/y')).toEqual([true, true, false]);
  });

  it('nothing else is special', () => {
    expect(matches('a+(b)[c].{d}', 'a+(b)[c].{d}', 'aab')).toEqual([true, false]);
    expect(matches('./a//b', 'a/b')).toEqual([true]);
  });

  it('a pattern knows which folders to look into', () => {
    const glob = compileGlob('out/*/x.txt');
    expect(['out', 'out/a', 'out/a/b', 'in'].map(glob.mayContain)).toEqual([true, true, false, false]);
  });

  it('a hostile pattern takes no longer than another', () => {
    expect(compileGlob(`${'*a'.repeat(100)}b`).matches('a'.repeat(255))).toBe(false);
  });
});
