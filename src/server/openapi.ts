/** OpenAPI 3.1 from the contract (SPEC S13.1). Nothing is written by hand, so the page cannot be wrong about a route. */
import type { z } from 'zod';
import { allRoutes, errorShape, type ROUTES, type Route } from '#client';
import { jsonSchemaOf } from './validation.ts';

type Json = Readonly<Record<string, unknown>>;

/** What each resource is about. */
const TAGS: Readonly<Record<keyof typeof ROUTES, string>> = {
  workflows: 'Named graphs of tasks, in versions.',
  runs: 'Executions of workflows: start them, follow them, act on them.',
  tasks: 'Tasks of runs: their state, attempts, files and logs, and what people decide about them.',
  approvals: 'Questions that wait for a person.',
  dead_letters: 'Tasks that failed for good.',
  events: 'The record of every committed change.',
  workers: 'Processes that take work.',
  leases: 'The rights of workers to attempts, and what they say about them.',
  outbox: 'Messages for a broker: what waits, what is dead.',
  admin: 'Numbers and lists for operators.',
  tokens: 'Who may call.',
};

const ERROR_REF = { $ref: '#/components/schemas/Error' };

/** The whole document. */
export function openApi({ version }: { readonly version: string }): Json {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const { name, route } of allRoutes()) {
    const path = `/api/v1${route.path.replace(/:(\w+)/g, '{$1}')}`;
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(name, route) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Relay',
      version,
      summary: 'Durable workflows: start and follow runs, decide, and work on tasks.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    tags: tags(),
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      schemas: { Error: jsonSchemaOf(errorShape, 'output') },
    },
  };
}

function tags(): readonly Json[] {
  return Object.entries(TAGS).map(([name, description]) => ({ name, description }));
}

function operation(name: string, route: Route): Json {
  const parameters = [...parametersOf(route.params, 'path'), ...parametersOf(route.query, 'query')];
  const error = { description: 'an error', content: { 'application/json': { schema: ERROR_REF } } };
  return {
    operationId: name,
    tags: [name.split('.')[0]],
    summary: route.summary,
    description: `Scope: \`${route.scope}\`.`,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.method === 'GET' || route.method === 'DELETE' ? {} : { requestBody: requestBody(route) }),
    responses: {
      200: { description: 'done', content: answerContent(route) },
      '4XX': error,
      '5XX': error,
    },
  };
}

function requestBody(route: Route): Json {
  const bytes = { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } };
  const json = { 'application/json': { schema: jsonSchemaOf(route.body, 'input') } };
  return { required: true, content: route.takesBytes ? bytes : json };
}

function answerContent(route: Route): Json {
  if (route.response === 'bytes') return { '*/*': { schema: { type: 'string', format: 'binary' } } };
  const json = { 'application/json': { schema: jsonSchemaOf(route.response, 'output') } };
  return route.streams ? { ...json, 'text/event-stream': { schema: { type: 'string' } } } : json;
}

function parametersOf(fields: z.ZodObject, place: 'path' | 'query'): readonly Json[] {
  const { properties = {}, required = [] } = jsonSchemaOf(fields, 'input') as {
    properties?: Readonly<Record<string, Json>>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    schema,
  }));
}
