import { Worker } from 'node:worker_threads'
import type { CountAnswer, CountRequest } from './worker.ts'

/** Counts tokens as OpenAI's models do (`o200k_base`), in a thread of its own that starts with the first count. */
export type Tokenizer = {
  /** The tokens of these texts; undefined when they are too long to be counted in time, or cannot be counted. */
  count(texts: readonly string[]): Promise<number | undefined>
  close(): Promise<void>
}

/** Longer texts are not counted. Characters. */
const maxLength = 4_000_000
/** Texts that may wait for the thread together: more would wait in vain. Characters. */
const maxWaiting = 3 * maxLength
/** Maximum duration of a count, the start of the thread included. Milliseconds. */
const patienceMs = 5_000

export function openTokenizer(): Tokenizer {
  const waiting = new Map<number, (tokens: number | undefined) => void>()
  let worker: Worker | undefined
  let last = 0
  /** The lengths of what the thread has not answered yet, by id. */
  const lengths = new Map<number, number>()
  let queued = 0

  const give = (id: number, tokens: number | undefined) => {
    waiting.get(id)?.(tokens)
    waiting.delete(id)
  }
  const forget = (id: number) => {
    queued -= lengths.get(id) ?? 0
    lengths.delete(id)
  }
  const fail = (failed: Worker) => {
    if (worker !== failed) return
    worker = undefined
    for (const id of [...lengths.keys()]) forget(id)
    for (const id of [...waiting.keys()]) give(id, undefined)
  }
  const start = (): Worker => {
    const started = new Worker(new URL('./worker.ts', import.meta.url))
    started.unref()
    started.on('message', ({ id, tokens }: CountAnswer) => {
      forget(id)
      give(id, tokens)
    })
    started.on('error', () => fail(started))
    started.on('exit', () => fail(started))
    return started
  }

  return {
    async count(texts) {
      const length = texts.reduce((sum, text) => sum + text.length, 0)
      if (length > maxLength || queued + length > maxWaiting) return undefined
      worker ??= start()
      const id = ++last
      const { promise, resolve } = Promise.withResolvers<number | undefined>()
      waiting.set(id, resolve)
      lengths.set(id, length)
      queued += length
      const timer = setTimeout(() => give(id, undefined), patienceMs)
      worker.postMessage({ id, texts } satisfies CountRequest)
      return await promise.finally(() => clearTimeout(timer))
    },
    async close() {
      await worker?.terminate()
    },
  }
}
