/** A value that fits a JSON Schema, made up from a seed: the same schema and seed always give the same value. */
import { createHash } from 'node:crypto';

type Schema = Readonly<Record<string, unknown>>;

const DEPTH_MAX = 12;
/** Below this depth only what is required is made, so that schemas which contain themselves come to an end. */
const OPTIONAL_DEPTH_MAX = 4;
const ITEMS_DEFAULT = 2;
const ITEMS_MAX = 1_000;

/** Makes the value. Keywords it does not know (`pattern`, `not`, …) are left to the check that follows. */
export function makeJson(schema: unknown, seed: string): unknown {
  return make({ schema, root: schema, seed, path: 'value', depth: 0 });
}

interface Place {
  readonly schema: unknown;
  readonly root: unknown;
  readonly seed: string;
  readonly path: string;
  readonly depth: number;
}

function make(place: Place): unknown {
  const schema = resolve(place);
  if (schema === null || place.depth > DEPTH_MAX) return null;
  for (const key of ['const', 'default'] as const) if (Object.hasOwn(schema, key)) return schema[key];
  if (isList(schema.enum) && schema.enum.length > 0) return pick(schema.enum, place);
  if (isList(schema.examples) && schema.examples.length > 0) return schema.examples[0];
  switch (typeOf(schema)) {
    case 'object':
      return makeObject(schema, place);
    case 'array':
      return makeArray(schema, place);
    case 'integer':
      return makeNumber(schema, place, 1);
    case 'number':
      return makeNumber(schema, place, 0.5);
    case 'boolean':
      return number(place) % 2 === 0;
    case 'null':
      return null;
    default:
      return makeString(schema, place);
  }
}

/** The schema with references, choices and combinations resolved; null where anything goes. */
function resolve({ schema, root, depth }: Place): Schema | null {
  if (!isSchema(schema)) return null;
  const { $ref: reference, anyOf, oneOf, allOf, ...own } = schema;
  const parts: unknown[] = [own];
  if (typeof reference === 'string') parts.push(follow(reference, root));
  for (const choice of [anyOf, oneOf]) if (isList(choice)) parts.push(choice[0]);
  if (isList(allOf)) parts.push(...allOf);
  if (parts.length === 1) return own;
  if (depth > DEPTH_MAX) return null;
  const resolved = parts.slice(1).map((part) => resolve({ schema: part, root, depth: depth + 1 } as Place));
  return [own, ...resolved].reduce<Schema>((all, part) => mergeSchemas(all, part ?? {}), {});
}

function mergeSchemas(a: Schema, b: Schema): Schema {
  const merged: Record<string, unknown> = { ...a, ...b };
  if (isSchema(a.properties) && isSchema(b.properties))
    merged.properties = { ...a.properties, ...b.properties };
  if (isList(a.required) && isList(b.required)) merged.required = [...a.required, ...b.required];
  return merged;
}

function follow(reference: string, root: unknown): unknown {
  let current = root;
  for (const part of reference.replace(/^#\/?/, '').split('/').filter(Boolean)) {
    const key = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
    current = isSchema(current) && Object.hasOwn(current, key) ? current[key] : undefined;
  }
  return current;
}

function typeOf(schema: Schema): unknown {
  if (isList(schema.type)) return schema.type[0];
  if (schema.type !== undefined) return schema.type;
  if (schema.properties !== undefined || schema.required !== undefined) return 'object';
  if (schema.items !== undefined || schema.prefixItems !== undefined) return 'array';
  const isNumeric = ['minimum', 'maximum', 'multipleOf'].some((key) => schema[key] !== undefined);
  return isNumeric ? 'number' : 'string';
}

function makeObject(schema: Schema, place: Place): Record<string, unknown> {
  const properties = isSchema(schema.properties) ? schema.properties : {};
  const required = isList(schema.required) ? schema.required.map(String) : [];
  const optional = place.depth < OPTIONAL_DEPTH_MAX ? Object.keys(properties) : [];
  const names = [...new Set([...optional, ...required])];
  return Object.fromEntries(names.map((name) => [name, make(inside(place, properties[name] ?? {}, name))]));
}

function makeArray(schema: Schema, place: Place): unknown[] {
  const fixed = isList(schema.prefixItems) ? schema.prefixItems : [];
  const least = bound(schema.minItems) ?? 0;
  const most = bound(schema.maxItems) ?? Math.max(ITEMS_DEFAULT, least);
  const wanted = place.depth < OPTIONAL_DEPTH_MAX ? Math.max(ITEMS_DEFAULT, least, fixed.length) : least;
  const length = schema.items === false ? fixed.length : Math.min(wanted, most, ITEMS_MAX);
  return Array.from({ length }, (_, index) =>
    make(inside(place, fixed[index] ?? schema.items ?? {}, String(index + 1))),
  );
}

function makeNumber(schema: Schema, place: Place, step: number): number {
  const unit = bound(schema.multipleOf) ?? step;
  const above = bound(schema.exclusiveMinimum);
  const below = bound(schema.exclusiveMaximum);
  const least = Math.max(bound(schema.minimum) ?? -Infinity, above === null ? -Infinity : above + unit / 2);
  const most = Math.min(bound(schema.maximum) ?? Infinity, below === null ? Infinity : below - unit / 2);
  const low = Number.isFinite(least) ? least : Math.min(1, most);
  const first = Math.ceil(low / unit) * unit;
  // Between two bounds closer than one step, only the bound itself is sure to fit.
  if (first > most) return least;
  const room = Math.max(1, Math.min(100, Math.floor((most - first) / unit) + 1));
  return first + (number(place) % room) * unit;
}

const FORMATS: Readonly<Record<string, (place: Place) => string>> = Object.freeze({
  'date-time': (place: Place) => `2026-01-${day(place)}T12:00:00Z`,
  date: (place: Place) => `2026-01-${day(place)}`,
  time: () => '12:00:00Z',
  duration: () => 'PT1H',
  email: (place: Place) => `offline-${digest(place).slice(0, 6)}@example.org`,
  hostname: () => 'example.org',
  ipv4: () => '192.0.2.1',
  ipv6: () => '2001:db8::1',
  uri: (place: Place) => `https://example.org/offline/${digest(place).slice(0, 6)}`,
  'uri-reference': (place: Place) => `/offline/${digest(place).slice(0, 6)}`,
  uuid: (place: Place) => digest(place).replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-4$3-8$4-$5'),
});

function makeString(schema: Schema, place: Place): string {
  const format = typeof schema.format === 'string' ? FORMATS[schema.format] : undefined;
  if (format !== undefined) return format(place);
  const text = `offline ${place.path} ${digest(place).slice(0, 6)}`;
  const least = bound(schema.minLength) ?? 0;
  return text.padEnd(Math.min(least, 100_000), '.').slice(0, bound(schema.maxLength) ?? undefined);
}

function inside(place: Place, schema: unknown, name: string): Place {
  return { ...place, schema, path: name, depth: place.depth + 1, seed: `${place.seed}/${name}` };
}

function pick(values: readonly unknown[], place: Place): unknown {
  return values[number(place) % values.length];
}

function day(place: Place): string {
  return String((number(place) % 28) + 1).padStart(2, '0');
}

function number(place: Place): number {
  return Number.parseInt(digest(place).slice(0, 8), 16);
}

function digest({ seed, path }: Place): string {
  return createHash('sha256').update(`${seed}:${path}`).digest('hex');
}

function bound(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
