import type { ServerResponse } from 'node:http'

/** A way to fail: with an HTTP status, or in the middle of the reply. */
export type Fault = { status: number } | 'stall' | 'cut' | 'garble' | 'unfinished'

/** The fault that a text asks for: `fail 503`, `stall`, `cut`, `garble`, `unfinished` or `refuse`. */
export function faultIn(text: string): Fault | 'refuse' | undefined {
  const [, status] = /\bfail ([45]\d\d)\b/.exec(text) ?? []
  if (status !== undefined) return { status: Number(status) }
  return kinds.find((kind) => new RegExp(`\\b${kind}\\b`).test(text))
}

const kinds = ['stall', 'cut', 'garble', 'unfinished', 'refuse'] as const

/** Fails after what was sent so far: stalls, breaks the connection, sends garbage, or ends without a finish reason. */
export async function failWith(response: ServerResponse, fault: Fault): Promise<void> {
  if (fault === 'stall') {
    response.flushHeaders()
    await new Promise((resolve) => response.once('close', resolve))
  } else if (fault === 'cut') {
    // Earlier chunks must be sent before the connection breaks.
    await new Promise<void>((resolve) => response.write(': cut\n\n', () => resolve()))
    response.destroy()
  } else {
    response.end(fault === 'garble' ? 'data: {"choices":[{"delta":{"content": oops\n\n' : '')
  }
}
