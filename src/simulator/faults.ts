import type { ServerResponse } from 'node:http'

/** How to fail: with an HTTP status, or in the middle of the answer. */
export type Trouble = { status: number } | 'stall' | 'cut' | 'garble' | 'unfinished'

/** The trouble a text asks for: `fail 503`, `stall`, `cut`, `garble`, `unfinished` or `refuse`. */
export function troubleIn(text: string): Trouble | 'refuse' | undefined {
  const [, status] = /\bfail ([45]\d\d)\b/.exec(text) ?? []
  if (status !== undefined) return { status: Number(status) }
  return kinds.find((kind) => new RegExp(`\\b${kind}\\b`).test(text))
}

const kinds = ['stall', 'cut', 'garble', 'unfinished', 'refuse'] as const

/** Goes wrong after what was sent so far: falls silent, breaks the connection, talks nonsense, or ends without a last word. */
export async function misbehave(response: ServerResponse, trouble: Trouble): Promise<void> {
  if (trouble === 'stall') {
    response.flushHeaders()
    await new Promise((resolve) => response.once('close', resolve))
  } else if (trouble === 'cut') {
    // What was said before must have left before the connection does.
    await new Promise<void>((resolve) => response.write(': cut\n\n', () => resolve()))
    response.destroy()
  } else {
    response.end(trouble === 'garble' ? 'data: {"choices":[{"delta":{"content": oops\n\n' : '')
  }
}
