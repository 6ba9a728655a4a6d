/**
 * Loaded into every thread of a router (`--import`): counts invocations of the project's functions with V8's precise coverage. On SIGUSR2 each
 * thread writes what ran since the last time into the folder that BENCH_COUNTS names, as one JSON file.
 */
import { writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { join } from 'node:path'
import { BroadcastChannel, isMainThread, threadId } from 'node:worker_threads'

/** Invocations by file and function since the last count. */
export type Counts = { [file: string]: { [functionName: string]: number } }

const folder = process.env.BENCH_COUNTS ?? ''
const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

const channel = new BroadcastChannel('bench-counts')
channel.unref()
channel.onmessage = take
if (isMainThread)
  process.on('SIGUSR2', () => {
    channel.postMessage('take')
    take()
  })
let taken = 0

async function take(): Promise<void> {
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const counts: Counts = {}
  for (const { url, functions } of result) {
    const [, file] = /\/(src\/[^?]+)/.exec(url) ?? []
    if (file === undefined || !url.startsWith('file:')) continue
    for (const { functionName, ranges } of functions) {
      const [range] = ranges
      if (!range || range.count === 0) continue
      const name = `${functionName || 'anonymous'}@${range.startOffset}`
      counts[file] ??= {}
      counts[file][name] = (counts[file][name] ?? 0) + range.count
    }
  }
  writeFileSync(join(folder, `${++taken}-${threadId}.json`), JSON.stringify(counts))
}
