/** The files that `relay init` writes. */
import { exampleConfig } from '../app/config.ts';
import { workflowJsonSchema } from '../definition/json-schema.ts';
import { BUILT_IN_HANDLERS } from '../handlers/registry.ts';

const MODELINE = '# yaml-language-server: $schema=../relay.schema.json';

const HELLO = `${MODELINE}
# The smallest useful workflow: two tasks, one after the other.
name: hello

inputs:
  who: { type: string, default: world, description: whom to greet }

tasks:
  greet:
    uses: transform                       # a handler: transform, shell, http, llm, script, wait, approval
    with:
      value: { text: "Hello, {{ inputs.who }}!" }

  shout:
    uses: shell
    with:
      # Data in a script is quoted with \`| sh\`, so that it stays data.
      run: echo {{ tasks.greet.output.text | upper | sh }}
    # No \`needs\` here: the reference to tasks.greet above adds it.

outputs:
  said: "{{ tasks.shout.output }}"
`;

const BRIEF = `${MODELINE}
# A research brief: a model finds points as JSON, a person agrees to go on, a model writes the text.
# offline/… is built in and needs no key; put openai/… or anthropic/… in its place for real work.
name: research-brief
description: Finds points about a topic and writes a brief from them.

inputs:
  topic: { type: string, default: tides }

defaults:                                 # merged into every task
  uses: llm
  timeout: 2m
  retry: { max_attempts: 3, initial: 1s }
  with: { model: offline/brief, max_tokens: 800 }

tasks:
  research:
    with:
      prompt: "List three facts about {{ inputs.topic }} as JSON: an object with a list called points."
    output:                               # checked when the model answers; an answer that does not fit is retried
      format: json
      schema:
        type: object
        required: [points]
        properties: { points: { type: array, items: { type: string } } }

  counter:
    with:
      prompt: "What do people often get wrong about {{ inputs.topic }}?"

  draft:
    gate: { message: "Write a brief from {{ tasks.research.output.points | length }} points?", timeout: 24h }
    with:
      prompt: |
        Write a brief about {{ inputs.topic }}.
        {% for point in tasks.research.output.points %}
        - {{ point }}
        {% endfor %}
        Keep in mind: {{ tasks.counter.output | truncate(400) }}

outputs:
  brief: "{{ tasks.draft.output }}"
`;

/** The line that keeps what Relay writes out of version control. */
export const IGNORED = '.relay/';

/** Paths relative to the project and their content. */
export function starterFiles(): readonly { path: string; text: string }[] {
  return [
    { path: 'workflows/hello.yaml', text: HELLO },
    { path: 'workflows/research-brief.yaml', text: BRIEF },
    {
      path: 'relay.schema.json',
      text: `${JSON.stringify(workflowJsonSchema(BUILT_IN_HANDLERS), null, 2)}\n`,
    },
    { path: 'relay.config.yaml', text: exampleConfig() },
  ];
}
