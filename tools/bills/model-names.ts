/** A model by its id, and its other names. */
export type NamedModel = { model: string; aliases: readonly string[] }

/**
 * The one name that a model has, however the ledger or a bill writes it: with or without its date, as an id or in a human-readable form.
 */
export type ModelNames = {
  /** Returns the name for a written one; for an unknown model it is that one without provider and date. */
  of(written: string): string
  /** Returns the name of the model that one of some texts mentions, the first that mentions any; undefined when there is none. */
  within(texts: readonly string[]): string | undefined
}

/** Returns the names of some models. All snapshots of a model have the same name: bills do not always tell them apart. */
export function modelNames(models: readonly NamedModel[]): ModelNames {
  const byName = new Map<string, string>()
  const byKey = new Map<string, string>()
  let longest = 0
  for (const { model, aliases } of models) {
    for (const name of aliases) byName.set(name, model)
    const words = wordsOf(model)
    const known = byKey.get(keyOf(words))
    // Of several ids the shortest, which is the one without a date.
    if (known === undefined || bare(model).length < known.length) byKey.set(keyOf(words), bare(model))
    longest = Math.max(longest, words.length)
  }
  const mentioned = (words: readonly string[]): string | undefined => {
    for (let length = Math.min(longest, words.length); length > 1; length--)
      for (let start = 0; start + length <= words.length; start++) {
        const found = byKey.get(keyOf(words.slice(start, start + length)))
        if (found !== undefined) return found
      }
    return undefined
  }
  const first = (texts: readonly string[], find: (words: readonly string[]) => string | undefined) =>
    texts.flatMap((text) => readings(text).flatMap((words) => find(words) ?? []))[0]
  return {
    of(written) {
      const id = byName.get(written) ?? byName.get(lastPart(written)) ?? written
      return first([id], (words) => byKey.get(keyOf(words))) ?? bare(id)
    },
    within: (texts) => first(texts, mentioned),
  }
}

/** Returns the words of a text, with and without a boundary before each capital: `MistralSmall` has two words, `DeepSeek` one. */
function readings(text: string): string[][] {
  const split = text.replace(/([a-z])([A-Z])/g, '$1 $2')
  return split === text ? [wordsOf(text)] : [wordsOf(text), wordsOf(split)]
}

/** Returns the words and numbers of a name, each apart, without those that do not distinguish models. */
function wordsOf(text: string): string[] {
  const plain = bare(text)
    .toLowerCase()
    .replace(/(\d)\.0(?!\d)/g, '$1')
    // The lifetime of a cache: 5m, 1h.
    .replace(/\b\d+[mh]\b/g, ' ')
  return (plain.match(/\p{L}+|\d+/gu) ?? []).filter((word) => word !== 'preview' && word !== 'latest')
}

/** Returns a key that is the same for `Claude 4.6 Opus` and `claude-opus-4-6`: words in any order, numbers in their own. */
function keyOf(words: readonly string[]): string {
  const numbers = words.filter((word) => /^\d/.test(word))
  const letters = words.filter((word) => !/^\d/.test(word)).sort()
  return `${letters.join(' ')} ${numbers.join('.')}`
}

/** Returns an id without its provider, its vendor, its version, its region and its date. */
function bare(id: string): string {
  return lastPart(id)
    .replace(/^(?:[a-z][a-z0-9-]*\.)+(?=[a-z])/, '')
    .replace(/@[\w-]+$/, '')
    .replace(/-v\d+:\d+\w*$|-v1$/, '')
    .replace(/[-_ ](?:20\d\d-?\d\d-?\d\d|\d\d-\d\d|\d{4})$/, '')
}

function lastPart(id: string): string {
  return /\s/.test(id) ? id : id.slice(id.lastIndexOf('/') + 1)
}
