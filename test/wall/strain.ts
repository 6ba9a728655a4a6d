import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { chat } from './clients/chat.ts'
import { call, type Seen } from './clients/client.ts'
import { outcomeOf } from './judge.ts'
import { type RouterProcess, startProcess } from './process.ts'
import type { Journal } from './simulator/journal.ts'
import { startSimulator } from './simulator/server.ts'

/** Runs a router as a process, at its usual limits, and prints what came of it. Whether all is well. */
export async function strain(print: (line: string) => void): Promise<boolean> {
  const simulator = await startSimulator()
  const router = await startProcess(simulator.url, 60_000)
  try {
    const reloaded = await reloadProblems(router, { seconds: 10, callers: 10 })
    const { calls, reloads } = reloaded
    tell(print, `reloads: ${reloads} under ${calls} calls in 10 s`, reloaded.problems)
    const models = { 'token-each-20ms': 'complete', 'silent-after-20': 'error' } as const
    const stopped = await stopProblems(router, simulator.journal, { of: 200, models })
    tell(print, 'stop: 200 streams, half of them silent', stopped)
    return reloaded.problems.length === 0 && stopped.length === 0
  } finally {
    router.end()
    await simulator.close()
  }
}

function tell(print: (line: string) => void, what: string, problems: readonly string[]): void {
  print(`${problems.length === 0 ? 'passed' : 'failed'}  ${what}`)
  for (const [problem, all] of Map.groupBy(problems, (problem) => problem))
    print(`          ${all.length} ×: ${problem}`)
}

/** A change each 110 ms: the router reads its files when nothing has changed for 100 ms, so this is as often as it can. */
const changeMs = 110

/** What goes wrong while the files of a router change about ten times a second for so long, under calls. */
export async function reloadProblems(
  router: RouterProcess,
  { seconds, callers }: { seconds: number; callers: number },
): Promise<{ calls: number; reloads: number; problems: string[] }> {
  const until = performance.now() + seconds * 1_000
  const problems: string[] = []
  let calls = 0
  const caller = async (name: string) => {
    while (performance.now() < until) {
      problems.push(...unlike('complete', await ask(router, 'ok', name)))
      calls++
      await pause(5)
    }
  }
  const all = Promise.all(Array.from({ length: callers }, (_, n) => caller(`reload-${n}`)))
  let changes = 0
  for (; performance.now() < until; await pause(changeMs)) router.change(`change-${++changes}`)
  await all
  if (!(await isListed(router, `steady/change-${changes}`))) problems.push('the last change is not in use')
  return { calls, reloads: router.reloads(), problems }
}

/** Running calls may go on for 30 s. */
const mostSeconds = 35

/** The kinds of streams, by turns, and how each ends when the router stops. */
type Streams = { of: number; models: { [model: string]: 'complete' | 'error' } }

/** What goes wrong with streams when a router is told to stop among them. */
export async function stopProblems(
  router: RouterProcess,
  journal: Journal,
  { of, models }: Streams,
): Promise<string[]> {
  const kinds = Object.entries(models)
  const answers = Array.from({ length: of }, async (_, n) => {
    const [model, ends] = kinds[n % kinds.length] as (typeof kinds)[number]
    return unlike(ends, await ask(router, model, `stop-${n}`))
  })
  await soon(() => stopping(journal).length === of)
  const under = stopping(journal).filter(({ endedAt }) => endedAt === undefined).length
  const told = performance.now()
  const exit = await router.stop()
  const seconds = (performance.now() - told) / 1_000
  const problems = (await Promise.all(answers)).flat()
  await soon(() => stopping(journal).every(({ endedAt }) => endedAt !== undefined))
  const open = stopping(journal).filter(({ endedAt }) => endedAt === undefined).length
  const rows = rowsOf(router)
  return [
    ...problems,
    ...(under === 0 ? ['no stream was under way when it was told to stop'] : []),
    ...(exit === 0 ? [] : [`it ended with ${exit}`]),
    ...(seconds < mostSeconds ? [] : [`it ended after ${Math.round(seconds)} s`]),
    ...(open === 0 ? [] : [`${open} requests are still open at the provider`]),
    ...(rows === of ? [] : [`the ledger has ${rows} rows of ${of} streams`]),
  ]
}

function stopping(journal: Journal) {
  return journal.entries().filter(({ caller }) => caller.startsWith('stop-'))
}

function ask({ gateway }: RouterProcess, model: string, caller: string): Promise<Seen> {
  return call(gateway, chat, {
    model: `steady/${model}`,
    text: `Count. (case:${caller})`,
    stream: true,
    id: caller,
  })
}

function unlike(expected: 'complete' | 'error', seen: Seen): string[] {
  const { of, problems } = outcomeOf({ mode: 'streamed' }, seen)
  const other = of === expected ? [] : [`${of ?? 'no end'}, not ${expected} (status ${seen.status})`]
  return [...seen.wrong, ...problems, ...other]
}

async function isListed({ gateway }: RouterProcess, model: string): Promise<boolean> {
  return await soon(async () => {
    const response = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${gateway.key}` } })
    const { data } = (await response.json()) as { data: { id: string }[] }
    return data.some(({ id }) => id === model)
  })
}

function rowsOf({ folder }: RouterProcess): unknown {
  const db = new Database(join(folder, 'data/router.sqlite'), { readonly: true })
  const rows = db.prepare("SELECT count(*) FROM ledger WHERE request_id LIKE 'stop-%'").pluck().get()
  db.close()
  return rows
}

/** Whether it becomes true within 20 seconds. */
async function soon(isSo: () => boolean | Promise<boolean>): Promise<boolean> {
  for (const until = performance.now() + 20_000; performance.now() < until; await pause(10)) {
    if (await isSo()) return true
  }
  return false
}
