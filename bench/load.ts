import { Agent, request } from 'undici'

/** How fast a server answered: milliseconds per call to its end and to its first byte, each sorted, and calls per second. */
export type Load = { callsPerSecond: number; latenciesMs: number[]; firstBytesMs: number[] }

const dispatcher = new Agent({ allowH2: false, connections: 1_024 })

/** Sends `calls` calls, `concurrent` at a time, and reads every answer to its end. Throws on any status but 200. */
export async function load(
  url: string,
  options: { calls: number; concurrent: number; body: object; headers?: Record<string, string> },
): Promise<Load> {
  const body = JSON.stringify(options.body)
  const headers = { 'content-type': 'application/json', ...options.headers }
  const latenciesMs: number[] = []
  const firstBytesMs: number[] = []
  let left = options.calls
  const begun = performance.now()
  const caller = async () => {
    while (left-- > 0) {
      const sent = performance.now()
      const answer = await request(url, { method: 'POST', headers, body, dispatcher })
      if (answer.statusCode !== 200) throw new Error(`${url}: ${answer.statusCode} ${await answer.body.text()}`)
      let first: number | undefined
      for await (const _ of answer.body) first ??= performance.now() - sent
      firstBytesMs.push(first ?? Number.NaN)
      latenciesMs.push(performance.now() - sent)
    }
  }
  await Promise.all(Array.from({ length: options.concurrent }, caller))
  const seconds = (performance.now() - begun) / 1_000
  return {
    callsPerSecond: options.calls / seconds,
    latenciesMs: sorted(latenciesMs),
    firstBytesMs: sorted(firstBytesMs),
  }
}

export function sorted(values: readonly number[]): number[] {
  return values.toSorted((a, b) => a - b)
}

/** The value below which this share of the sorted values lies. */
export function percentile(values: readonly number[], share: number): number {
  return values[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN
}

export function median(values: readonly number[]): number {
  return percentile(sorted(values), 0.5)
}
