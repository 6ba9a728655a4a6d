/** Rules for comparing the ids of a provider's models, and other forms in which it accepts them. */
export type ModelIds = {
  /** Differences that make no other model. */
  ignore: ReadonlySet<'case' | 'blanks'>
  /** Patterns that find the id inside of another form, such as a resource name, as their first group. */
  forms: readonly RegExp[]
}

/** The rule of a provider that takes ids exactly as they are listed. */
export const exactIds: ModelIds = { ignore: new Set(), forms: [] }

/** The same text for all spellings of an id that mean the same model. */
export function comparableId(id: string, { ignore }: ModelIds): string {
  const trimmed = ignore.has('blanks') ? id.trim() : id
  return ignore.has('case') ? trimmed.toLowerCase() : trimmed
}

/** The id inside of an id that has one of the provider's other forms. */
export function idInside(id: string, { forms }: ModelIds): string | undefined {
  for (const form of forms) {
    const found = form.exec(id)?.[1]
    if (found !== undefined) return found
  }
  return undefined
}

/** The place of the id in a form. */
const place = '{model}'

/** A text as a pattern that matches nothing else. */
function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}

/**
 * A form as manifests write it: `arn:*:bedrock:*:*:foundation-model/{model}`, where `*` is any text without `:` and `/`.
 * Undefined when it has no `{model}`, or several.
 */
export function readForm(form: string): RegExp | undefined {
  const pieces = form.split(place).map((piece) => piece.split(/\*+/).map(literal).join('[^:/]*'))
  return pieces.length === 2 ? new RegExp(`^${pieces.join('(.+)')}$`, 's') : undefined
}
