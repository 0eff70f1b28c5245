/** Text for a terminal: harmless, measured, cut. */
import { describe, expect, it } from 'vitest';
import { cut, manyLines, oneLine, pad, widthOf } from './text.ts';
import { agoText, spanText } from './time.ts';

describe('text of others', () => {
  it('cannot steer the terminal', () => {
    expect(oneLine('a\u001b[2Jb\nc\td')).toBe('a\u{fffd}[2Jb c d');
    expect(manyLines('a\r\nb\u0007\tc')).toBe('a\nb\u{fffd}  c');
  });

  it('is measured in columns and cut to them', () => {
    expect([widthOf('abc'), widthOf('界界'), widthOf('e\u0301'), widthOf('👍')]).toEqual([3, 4, 1, 2]);
    expect([cut('abcdef', 4), cut('界界界', 4), cut('abc', 3), cut('abc', 0)]).toEqual([
      'abc…',
      '界…',
      'abc',
      '',
    ]);
    expect(pad('界', 4)).toBe('界  ');
  });
});

describe('a time', () => {
  it('is told in the two units that matter', () => {
    const told = [0, 38, 4_210, 59_900, 185_000, 7_800_000, 273_600_000].map(spanText);
    expect(told).toEqual(['0ms', '38ms', '4.2s', '59s', '3m 05s', '2h 10m', '3d 04h']);
  });

  it('is told from now', () => {
    const now = Date.UTC(2026, 0, 2);
    const at = (ms: number): string => agoText(new Date(now - ms).toISOString(), now);
    expect([at(5_000), at(300_000), at(7_200_000), at(172_800_000), at(-60_000)]).toEqual([
      '5s ago',
      '5m ago',
      '2h ago',
      '2d ago',
      'in 1m',
    ]);
    expect(agoText(null, now)).toBe('–');
  });
});
