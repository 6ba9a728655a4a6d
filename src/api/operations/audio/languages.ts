/** Made when it is first used: it reads a part of the Unicode data that nothing else needs. */
let names: Intl.DisplayNames | undefined

/** The English name of a language by its code: `German`. Undefined for none. Throws RangeError for what cannot be a code. */
export function languageOf(code: string): string | undefined {
  names ??= new Intl.DisplayNames('en', { type: 'language', fallback: 'none' })
  return names.of(code)
}
