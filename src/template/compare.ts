/** Equality, order and membership with Python's rules: `true == 1`, lists compare element by element, unlike kinds have no order. */
import { fail, type Rendering, spend, spendOnSearch, spendOnText } from './rendering.ts';
import { DATA_DEPTH_MAX, isMap, isNumeric, kindOf } from './values.ts';

/** Whether two values are equal, all the way down. */
export function isEqual(rendering: Rendering, left: unknown, right: unknown, depth = 0): boolean {
  spend(rendering, 1);
  if (left === right) return true;
  if (typeof left === 'string' && typeof right === 'string') {
    if (left.length === right.length) spendOnText(rendering, left.length);
    return left === right;
  }
  if (isNumeric(left) && isNumeric(right)) return Number(left) === Number(right);
  if (depth >= DATA_DEPTH_MAX) tooDeep(rendering);
  if (Array.isArray(left) && Array.isArray(right)) {
    if (left.length !== right.length) return false;
    for (let index = 0; index < left.length; index++) {
      if (!isEqual(rendering, left[index], right[index], depth + 1)) return false;
    }
    return true;
  }
  if (!isMap(left) || !isMap(right)) return false;
  const keys = Object.keys(left);
  spend(rendering, keys.length);
  if (keys.length !== Object.keys(right).length) return false;
  for (const key of keys) {
    if (!Object.hasOwn(right, key) || !isEqual(rendering, left[key], right[key], depth + 1)) return false;
  }
  return true;
}

/** Negative, zero or positive as `left` comes before, with or after `right`. */
export function order(rendering: Rendering, left: unknown, right: unknown, depth = 0): number {
  spend(rendering, 1);
  if (isNumeric(left) && isNumeric(right)) return Number(left) - Number(right);
  if (typeof left === 'string' && typeof right === 'string') return textOrder(rendering, left, right);
  if (depth >= DATA_DEPTH_MAX) tooDeep(rendering);
  if (Array.isArray(left) && Array.isArray(right)) {
    const shared = Math.min(left.length, right.length);
    for (let index = 0; index < shared; index++) {
      if (isEqual(rendering, left[index], right[index])) continue;
      return order(rendering, left[index], right[index], depth + 1);
    }
    return left.length - right.length;
  }
  return fail(
    rendering,
    'type',
    `${kindOf(left)} and ${kindOf(right)} have no order`,
    orderHint(left, right),
  );
}

/** Whether `container` has `item`: a part of text, an element of a list, a key of a map. */
export function contains(rendering: Rendering, container: unknown, item: unknown): boolean {
  if (typeof container === 'string') {
    if (typeof item !== 'string') {
      return fail(rendering, 'type', `text can only contain text, and this is ${kindOf(item)}`);
    }
    spendOnSearch(rendering, container.length, item.length);
    return container.includes(item);
  }
  if (Array.isArray(container)) return container.some((element) => isEqual(rendering, element, item));
  if (isMap(container)) return isKey(item) && Object.hasOwn(container, String(item));
  return fail(rendering, 'type', `\`in\` needs text, a list or a map, and this is ${kindOf(container)}`);
}

/** Whether a value can be a key of a map: text, or a number that stands for its text. */
export function isKey(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number';
}

/** Order by code points. UTF-16 units order the same, but for characters beyond U+FFFF. */
function textOrder(rendering: Rendering, left: string, right: string): number {
  const shared = Math.min(left.length, right.length);
  spendOnText(rendering, shared);
  if (left === right) return 0;
  let at = 0;
  while (at < shared && left.charCodeAt(at) === right.charCodeAt(at)) at++;
  if (at === shared) return left.length - right.length;
  return rank(left.charCodeAt(at)) - rank(right.charCodeAt(at));
}

/** A UTF-16 unit's place in code point order: surrogates stand for characters above every other unit. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

function orderHint(left: unknown, right: unknown): string | undefined {
  const isMixed =
    (typeof left === 'string' && isNumeric(right)) || (isNumeric(left) && typeof right === 'string');
  return isMixed ? 'make the text a number with `| int` or `| float`' : undefined;
}

function tooDeep(rendering: Rendering): never {
  return fail(rendering, 'type', `the data is nested more than ${DATA_DEPTH_MAX} levels deep`);
}
