import type { Kit } from 'inference-router/plugin'

/** A moderation endpoint in the form of OpenAI's; without categories and threshold its own verdict counts. */
export type ModerationOptions = {
  url: string
  model: string
  key: string
  categories?: string[]
  threshold?: number
  timeout_ms: number
}

type Result = { flagged?: boolean; categories?: Verdicts; category_scores?: { [name: string]: number } }
type Verdicts = { [name: string]: boolean }

/** Returns a function that names what a text is flagged for; undefined for none. It rejects where the endpoint does not decide. */
export function openModeration(options: ModerationOptions, kit: Pick<Kit, 'fetch' | 'secret'>) {
  const { url, model, key, timeout_ms } = options
  const authorization = `Bearer ${kit.secret(key)}`
  return async (texts: readonly string[], signal: AbortSignal): Promise<string | undefined> => {
    const input = texts.flatMap(pieces)
    const response = await kit.fetch(`${url.replace(/\/+$/, '')}/moderations`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization },
      body: JSON.stringify({ model, input }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeout_ms)]),
    })
    if (!response.ok) throw new Error(`the moderation endpoint answered with status ${response.status}`)
    const { results } = (await response.json()) as { results?: Result[] }
    if (!Array.isArray(results) || results.length !== input.length)
      throw new Error('the moderation endpoint answered without a result for each text')
    for (const result of results) {
      const flagged = flaggedFor(result, options)
      if (flagged !== undefined) return flagged
    }
    return undefined
  }
}

function flaggedFor(
  { flagged, categories = {}, category_scores = {} }: Result,
  { categories: wanted, threshold }: ModerationOptions,
): string | undefined {
  const isWanted = (name: string) => wanted === undefined || wanted.includes(name)
  if (threshold !== undefined)
    return Object.keys(category_scores).find((name) => isWanted(name) && (category_scores[name] ?? 0) >= threshold)
  if (wanted === undefined && typeof flagged !== 'boolean') throw new Error('the moderation endpoint gave no verdict')
  const found = Object.keys(categories).find((name) => isWanted(name) && categories[name] === true)
  return found ?? (wanted === undefined && flagged ? 'flagged' : undefined)
}

function pieces(text: string): string[] {
  return Array.from({ length: Math.ceil(text.length / maxPiece) }, (_, index) =>
    text.slice(index * maxPiece, (index + 1) * maxPiece),
  )
}

/** Characters of one input, within the limits of common endpoints. */
const maxPiece = 8_000
