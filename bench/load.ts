import { Agent, request } from 'undici'

/** How fast a server answered: milliseconds per call, sorted ascending, and calls per second. */
export type Load = { callsPerSecond: number; latenciesMs: number[]; chunks: number }

const dispatcher = new Agent({ allowH2: false, connections: 256 })

/** Sends `calls` calls, `concurrent` at a time, and reads every answer to its end. Throws on any status but 200. */
export async function load(
  url: string,
  options: { calls: number; concurrent: number; body: object; headers?: Record<string, string> },
): Promise<Load> {
  const body = JSON.stringify(options.body)
  const headers = { 'content-type': 'application/json', ...options.headers }
  const latenciesMs: number[] = []
  let chunks = 0
  let left = options.calls
  const begun = performance.now()
  const caller = async () => {
    while (left-- > 0) {
      const sent = performance.now()
      const answer = await request(url, { method: 'POST', headers, body, dispatcher })
      if (answer.statusCode !== 200) throw new Error(`${url}: ${answer.statusCode} ${await answer.body.text()}`)
      for await (const _ of answer.body) chunks++
      latenciesMs.push(performance.now() - sent)
    }
  }
  await Promise.all(Array.from({ length: options.concurrent }, caller))
  const seconds = (performance.now() - begun) / 1_000
  return { callsPerSecond: options.calls / seconds, latenciesMs: latenciesMs.sort((a, b) => a - b), chunks }
}

/** The value below which this share of the sorted values lies. */
export function percentile(sorted: number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
