/** The process's environment, or a test's. */
export type Environment = { readonly [name: string]: string | undefined }

/** A text with its references replaced, and the names of variables that are not set and have no default. */
export type Resolved = { text: string; missing: string[] }

const reference = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g

/**
 * Replaces `${NAME}` and `${NAME:-default}` by the environment's values. As in a shell an empty value counts as unset;
 * what is missing becomes nothing.
 */
export function resolveText(text: string, env: Environment): Resolved {
  const missing: string[] = []
  const resolved = text.replace(reference, (_, name: string, fallback: string | undefined) => {
    const value = env[name] || fallback
    if (value === undefined) missing.push(name)
    return value ?? ''
  })
  return { text: resolved, missing }
}

/** The names of the variables that a text refers to. */
export function referencesIn(text: string): string[] {
  return [...text.matchAll(reference)].map(([, name = '']) => name)
}

/** Checks whether a text is one reference and nothing else, as secrets must be. */
export function isReference(text: string): boolean {
  return text.replace(reference, '') === '' && text.startsWith('${') && text.indexOf('${', 1) < 0
}

/** Checks whether a text has a reference that is not well formed, such as `${1}` or `${NAME`. */
export function hasBrokenReference(text: string): boolean {
  return text.replace(reference, '').includes('${')
}

/** Message that does not repeat the text, which may be a secret. */
export const brokenReferenceMessage = `a \`\${\` is not the start of a reference: write \${NAME} or \${NAME:-default}`
