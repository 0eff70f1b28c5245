/** Every filter, in one table. A new filter is one entry in the file of its concern. */
import { choosingFilters } from './filters/choose.ts';
import { DATA_FILTERS } from './filters/data.ts';
import { filesizeformat, format } from './filters/format.ts';
import { LIST_FILTERS } from './filters/list.ts';
import { MARKUP_FILTERS } from './filters/markup.ts';
import { NUMBER_FILTERS } from './filters/number.ts';
import { TEXT_FILTERS } from './filters/text.ts';
import { wordwrap } from './filters/wrap.ts';
import type { Operation, Operations } from './operation.ts';

/** Filters by name. */
export const FILTERS: Operations = new Map<string, Operation>(
  Object.entries({
    ...TEXT_FILTERS,
    ...MARKUP_FILTERS,
    ...NUMBER_FILTERS,
    ...LIST_FILTERS,
    ...DATA_FILTERS,
    ...choosingFilters(() => FILTERS),
    wordwrap,
    format,
    filesizeformat,
  }),
);
