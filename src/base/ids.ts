/** Identifiers: UUID version 7 (they sort by birth), branded so that one kind never passes for another. */
import { uuidv7 } from 'uuidv7';

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/** Names one run. */
export type RunId = Branded<'RunId'>;
/** Names one task in one run. */
export type TaskRunId = Branded<'TaskRunId'>;
/** Names one question to a person. */
export type QuestionId = Branded<'QuestionId'>;

export const newRunId = (): RunId => uuidv7() as RunId;
export const newTaskRunId = (): TaskRunId => uuidv7() as TaskRunId;
export const newQuestionId = (): QuestionId => uuidv7() as QuestionId;
