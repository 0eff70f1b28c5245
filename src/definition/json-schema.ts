/** The JSON Schema of workflow files, for editors: the validator's own shape, plus the config of each built-in handler. */
import { z } from 'zod';
import type { HandlerCatalog } from './handler-spec.ts';
import { workflowSchema } from './workflow-schema.ts';

type JsonSchema = Record<string, unknown>;

/** Draft 2020-12, as understood by the YAML plugins of common editors. */
export function workflowJsonSchema(handlers: HandlerCatalog): JsonSchema {
  const schema = z.toJSONSchema(workflowSchema, { io: 'input' }) as JsonSchema;
  const tasks = (schema.properties as Record<string, JsonSchema>).tasks;
  const task = tasks?.additionalProperties as JsonSchema;
  task.allOf = [...handlers.values()].map((handler) =>
    implication(
      { properties: { uses: { const: handler.name } }, required: ['uses'] },
      { properties: { with: configSchema(handler.config) } },
    ),
  );
  return { ...schema, title: 'Relay workflow' };
}

/** Made from pairs, because an object literal with a key `then` looks like a promise. */
function implication(condition: JsonSchema, consequence: JsonSchema): JsonSchema {
  return Object.fromEntries([
    ['if', condition],
    // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
    ['then', consequence],
  ]);
}

/** A handler's config as it may stand in a file: `defaults` can fill keys in, and a template can stand for any value. */
function configSchema(config: z.ZodType): JsonSchema {
  const { $schema: _, required: __, ...schema } = z.toJSONSchema(config, { io: 'input' }) as JsonSchema;
  const properties = Object.entries((schema.properties as Record<string, JsonSchema>) ?? {});
  return {
    ...schema,
    properties: Object.fromEntries(properties.map(([key, value]) => [key, orTemplate(value)])),
  };
}

function orTemplate(schema: JsonSchema): JsonSchema {
  const isFreeText = schema.type === 'string' && schema.pattern === undefined && schema.enum === undefined;
  if (isFreeText || Object.keys(schema).every((key) => key === 'description')) return schema;
  const { description, ...rest } = schema;
  const template = { type: 'string', pattern: '\\{[{%]' };
  return { ...(description === undefined ? {} : { description }), anyOf: [rest, template] };
}
