/** The reference page of the built-in handlers, from their schemas. */
import { z } from 'zod';
import type { HandlerCatalog, HandlerSpec } from '../src/definition/handler-spec.ts';

type JsonSchema = Readonly<Record<string, unknown>>;

/** One section per handler with a table of its `with`. */
export function renderHandlersPage(handlers: HandlerCatalog): string {
  const sections = [...handlers.values()].map(renderHandler);
  return `# Handlers\n\nA task names its handler with \`uses\` and configures it with \`with\`. Every value may be a template.\n\n${sections.join('\n')}`;
}

function renderHandler({ name, summary, aliases, config }: HandlerSpec): string {
  const schema = z.toJSONSchema(config, { io: 'input' }) as JsonSchema;
  const required = new Set((schema.required as string[] | undefined) ?? []);
  const rows = Object.entries((schema.properties as Record<string, JsonSchema>) ?? {}).map(
    ([key, value]) =>
      `| \`${key}\` | ${typeName(value)} | ${required.has(key) ? 'yes' : ''} | ${value.description ?? ''} |`,
  );
  const also =
    aliases === undefined
      ? ''
      : ` In the node-list dialect also ${aliases.map((alias) => `\`${alias}\``).join(', ')}.`;
  return `## ${name}\n\n${summary}${also}\n\n| key | type | required | |\n|---|---|---|---|\n${rows.join('\n')}\n`;
}

function typeName(schema: JsonSchema): string {
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => `\`${value}\``).join(', ');
  if (Array.isArray(schema.anyOf)) return (schema.anyOf as JsonSchema[]).map(typeName).join(' or ');
  if (schema.type === 'array') return `list of ${typeName((schema.items as JsonSchema) ?? {})}`;
  if (schema.type === 'object') return 'mapping';
  return (schema.type as string | undefined) ?? 'any';
}
