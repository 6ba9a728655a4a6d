import type { VirtualTime } from './virtual-time.ts'

/** Official SDKs, which try again by themselves: their rules differ only in which times to wait they accept. */
export const sdks = ['openai', 'anthropic'] as const
export type Sdk = (typeof sdks)[number]

/** What a client gets of one try. An answer that breaks off after it has begun is not asked for again. */
export type Got =
  | { kind: 'answer' }
  | { kind: 'broken answer' }
  | { kind: 'broken connection' }
  | { kind: 'error'; status: number; headers: Readonly<Record<string, string>> }

export type Try = (signal: AbortSignal) => Promise<Got>

/** Retries, and the time limit of one try in milliseconds. */
const [retries, tryMs] = [2, 600_000]

/** Makes one call as an SDK does. */
export async function callBySdk(
  sdk: Sdk,
  send: Try,
  { time, random }: { time: VirtualTime; random: () => number },
): Promise<{ succeeded: boolean; tries: number }> {
  for (let tries = 1; ; tries++) {
    const got = await withinTime(send, time)
    if (got.kind === 'answer' || got.kind === 'broken answer') return { succeeded: got.kind === 'answer', tries }
    if (tries > retries || !isRetried(got)) return { succeeded: false, tries }
    const askedMs = got.kind === 'error' ? Number(got.headers['retry-after']) * 1_000 : Number.NaN
    const isHeeded = sdk === 'openai' ? askedMs >= 0 && askedMs <= 60_000 : askedMs > 0
    await time.sleep(isHeeded ? askedMs : 500 * 2 ** (tries - 1) * (1 - random() * 0.25))
  }
}

async function withinTime(send: Try, time: VirtualTime): Promise<Got> {
  const timer = new AbortController()
  const aborted = new AbortController()
  const late = time.sleep(tryMs, timer.signal).then(
    () => {
      aborted.abort(new Error('The SDK has waited long enough.'))
      return { kind: 'broken connection' } as const
    },
    () => new Promise<never>(() => {}),
  )
  const sent = send(aborted.signal)
  // It is of no interest after its time.
  sent.catch(() => {})
  try {
    return await Promise.race([sent, late])
  } finally {
    timer.abort(new Error('It has come in time.'))
  }
}

function isRetried(got: Got): boolean {
  if (got.kind !== 'error') return true
  if (got.headers['x-should-retry'] === 'false') return false
  return [408, 409, 429].includes(got.status) || got.status >= 500
}
