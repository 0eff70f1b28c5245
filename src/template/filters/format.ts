/** The filters `format` (printf style) and `filesizeformat`. Widths and precisions are paid for before anything is padded. */
import { lengthOf, repeated, takeCharacters } from '../characters.ts';
import type { Named, Operation } from '../operation.ts';
import { charge, fail, type Rendering, spend, spendOnText } from '../rendering.ts';
import { textOf } from '../text.ts';
import { isTruthy } from '../truth.ts';
import { isNumeric, kindOf } from '../values.ts';

const DIRECTIVE = /%(?:\(([^()]*)\))?([-+ 0#]*)(\d*)(?:\.(\d*))?([a-zA-Z%])?/g;
const PRECISION_MAX = 100;

interface Directive {
  readonly flags: string;
  readonly width: number;
  readonly precision: number | null;
  readonly conversion: string;
}

/** Fills `%s`, `%d`, `%f` and the like with arguments. */
export const format: Operation = {
  params: [],
  takesAny: true,
  run: (rendering, subject, args, named) => {
    const pattern = textOf(rendering, subject);
    spendOnText(rendering, pattern.length);
    const source = argumentSource(rendering, args, named);
    let text = '';
    let at = 0;
    for (const match of pattern.matchAll(DIRECTIVE)) {
      spend(rendering, 1);
      text += pattern.slice(at, match.index);
      at = match.index + match[0].length;
      const directive = readDirective(rendering, match);
      text += directive.conversion === '%' ? '%' : fill(rendering, directive, source.next(match[1]));
    }
    if (!source.isUsedUp())
      return fail(rendering, 'type', 'there are more arguments than places in the format');
    charge(rendering, pattern.length);
    return text + pattern.slice(at);
  },
};

/** Hands out arguments by place or by name; as in Python, one format uses one of the two. */
function argumentSource(
  rendering: Rendering,
  args: readonly unknown[],
  named: Named,
): { next(name: string | undefined): unknown; isUsedUp(): boolean } {
  const isNamed = Object.keys(named).length > 0;
  if (isNamed && args.length > 0)
    fail(rendering, 'type', '`format` takes arguments by place or by name, not both');
  let used = 0;
  return {
    next(name) {
      if (name !== undefined) {
        if (Object.hasOwn(named, name)) return named[name];
        return fail(rendering, 'type', `the format needs an argument \`${name}\``);
      }
      if (used < args.length) return args[used++];
      return fail(rendering, 'type', 'the format has more places than there are arguments');
    },
    isUsedUp: () => isNamed || used === args.length,
  };
}

function readDirective(rendering: Rendering, match: RegExpExecArray): Directive {
  const [written, , flags = '', width = '', precision, conversion] = match;
  if (conversion === undefined)
    return fail(rendering, 'type', `\`${written}\` is not a complete format`, 'write `%%` for `%`');
  return {
    flags,
    width: Number(width),
    precision: precision === undefined ? null : Number(precision),
    conversion,
  };
}

function fill(rendering: Rendering, directive: Directive, value: unknown): string {
  const { conversion, precision } = directive;
  if (conversion === 's') {
    const text = textOf(rendering, value);
    return pad(rendering, directive, {
      sign: '',
      body: precision === null ? text : takeCharacters(rendering, text, precision),
    });
  }
  if (!'dixXoeEfFgG'.includes(conversion)) {
    return fail(rendering, 'type', `\`%${conversion}\` is not a format`, 'use %s, %d, %f, %e, %g, %x or %o');
  }
  if (!isNumeric(value))
    return fail(rendering, 'type', `\`%${conversion}\` needs a number, and this is ${kindOf(value)}`);
  if (precision !== null && precision > PRECISION_MAX) {
    return fail(rendering, 'budget', `the precision of \`%${conversion}\` is at most ${PRECISION_MAX}`);
  }
  const number = Number(value);
  const isNegative = number < 0;
  const sign = isNegative
    ? '-'
    : directive.flags.includes('+')
      ? '+'
      : directive.flags.includes(' ')
        ? ' '
        : '';
  return pad(rendering, directive, { sign, body: digits(rendering, directive, Math.abs(number)) });
}

function digits(rendering: Rendering, directive: Directive, value: number): string {
  const { conversion, precision } = directive;
  const lower = conversion.toLowerCase();
  if (lower === 'f') return fixed(value, precision ?? 6);
  if (lower === 'e') return upperIf(conversion, exponent(value.toExponential(precision ?? 6)));
  if (lower === 'g') return upperIf(conversion, general(value, precision ?? 6));
  if ((lower === 'x' || lower === 'o') && !Number.isInteger(value)) {
    return fail(rendering, 'type', `\`%${conversion}\` needs a whole number`);
  }
  const radix = lower === 'x' ? 16 : lower === 'o' ? 8 : 10;
  const prefix = directive.flags.includes('#') && radix !== 10 ? `0${lower}` : '';
  const body = BigInt(Math.trunc(value))
    .toString(radix)
    .padStart(precision ?? 0, '0');
  return upperIf(conversion, prefix + body);
}

const upperIf = (conversion: string, text: string): string =>
  conversion === conversion.toUpperCase() ? text.toUpperCase() : text;

/** Decimal digits; `toFixed` falls back to an exponent from 1e21 on, where a number has no fraction left. */
function fixed(value: number, precision: number): string {
  if (value < 1e21) return value.toFixed(precision);
  return BigInt(value).toString() + (precision > 0 ? `.${'0'.repeat(precision)}` : '');
}

/** Python writes at least two digits of exponent. */
function exponent(text: string): string {
  return text.replace(/e([+-])(\d)$/, 'e$10$2');
}

function general(value: number, precision: number): string {
  const digits = Math.max(1, precision);
  const magnitude = value === 0 ? 0 : Number(value.toExponential(digits - 1).split('e')[1]);
  const isPlain = magnitude >= -4 && magnitude < digits;
  const text = isPlain ? value.toFixed(Math.max(0, digits - 1 - magnitude)) : value.toExponential(digits - 1);
  const [mantissa = '', power] = text.split('e');
  const short = mantissa.includes('.') ? mantissa.replace(/0+$/, '').replace(/\.$/, '') : mantissa;
  return power === undefined ? short : exponent(`${short}e${power}`);
}

function pad(rendering: Rendering, directive: Directive, text: { sign: string; body: string }): string {
  const { flags, width, conversion } = directive;
  const whole = text.sign + text.body;
  charge(rendering, whole.length);
  const gap = width - lengthOf(rendering, whole);
  if (gap <= 0) return whole;
  if (flags.includes('-')) return whole + repeated(rendering, ' ', gap);
  if (flags.includes('0') && conversion !== 's') return text.sign + repeated(rendering, '0', gap) + text.body;
  return repeated(rendering, ' ', gap) + whole;
}

const PREFIXES = ['k', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y'];

/** A number of bytes for people: `1.5 kB`, or `1.5 KiB` when binary. */
export const filesizeformat: Operation = {
  params: ['binary'],
  run: (rendering, subject, [binary]) => {
    const bytes =
      typeof subject === 'string' ? Number(subject) : isNumeric(subject) ? Number(subject) : Number.NaN;
    if (!Number.isFinite(bytes))
      return fail(rendering, 'type', `expected a number of bytes, found ${kindOf(subject)}`);
    const base = isTruthy(binary) ? 1024 : 1000;
    if (bytes === 1) return '1 Byte';
    if (bytes < base) return `${Math.trunc(bytes)} Bytes`;
    let power = 1;
    while (power < PREFIXES.length && bytes >= base ** (power + 1)) power++;
    const prefix = PREFIXES[power - 1] ?? '';
    const unit = base === 1024 ? `${prefix.toUpperCase()}iB` : `${prefix}B`;
    return `${(bytes / base ** power).toFixed(1)} ${unit}`;
  },
};
