import { all, api } from './api.ts'

/** Returns the items of a text with one item per line. */
export function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

/** Reads pairs such as `name=value`, one to a line. Throws an Error that names the line. */
export function pairsOf(text: string): Record<string, string> {
  return Object.fromEntries(
    linesOf(text).map((line) => {
      const at = line.indexOf('=')
      if (at < 1) throw new Error(`Write '${line.slice(0, 40)}' as name=value.`)
      return [line.slice(0, at).trim(), line.slice(at + 1).trim()]
    }),
  )
}

export function pairsText(pairs: Readonly<Record<string, string>> | undefined): string {
  return Object.entries(pairs ?? {})
    .map(([name, value]) => `${name}=${value}`)
    .join('\n')
}

/** Reads a number that may be left out. Throws an Error that names the field. */
export function numberOr<Other>(text: string, label: string, other: Other): number | Other {
  if (text === '') return other
  const value = Number(text)
  if (!Number.isFinite(value)) throw new Error(`${label} is a number, not '${text.slice(0, 40)}'.`)
  return value
}

/** Returns the names that a call may ask for: models, aliases and policies. */
export async function callableNames(signal: AbortSignal): Promise<string[]> {
  const [{ data }, aliases, policies] = await Promise.all([
    api<{ data: { id: string }[] }>('v1/models/all', { signal }),
    all<{ name: string }>('v1/manage/alias', 'aliases', signal).catch(() => []),
    all<{ id: string }>('v1/manage/policy', 'policies', signal).catch(() => []),
  ])
  return [
    ...new Set([...policies.map(({ id }) => id), ...aliases.map(({ name }) => name), ...data.map(({ id }) => id)]),
  ]
}
