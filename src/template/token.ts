/** The words of the language: what the lexer makes and the parser reads. */

/** The kinds of token; `open-` and `close-` are the delimiters `{{ }}` and `{% %}`. */
export type TokenKind =
  | 'text'
  | 'open-output'
  | 'close-output'
  | 'open-block'
  | 'close-block'
  | 'name'
  | 'string'
  | 'integer'
  | 'float'
  | 'operator'
  | 'end';

/** One token. `text` is what it means: a string's characters with escapes resolved, a text's after whitespace control. */
export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
  readonly start: number;
  readonly end: number;
}
