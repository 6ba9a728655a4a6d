// @module-tag slow
import { execFile } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { lateFlags, serverFlags } from '../../src/runtime/restart.ts'

const run = promisify(execFile)

/** Megabytes of a semi-space that V8 has come to in a process of its own, thread by thread. */
async function sizes(kind: string): Promise<number[]> {
  return (await printed(kind)).trim().split('\n').map(Number)
}

async function printed(kind: string, flags: readonly string[] = [], late: readonly string[] = []): Promise<string> {
  const child = join(import.meta.dirname, 'young-generation-child.ts')
  const { stdout } = await run(process.execPath, [...serverFlags, ...flags, child, kind, ...late], { timeout: 60_000 })
  return stdout
}

test.each(['few', 'long streams', 'long streams that begin', 'long streams that end'])(
  'the young generation keeps its usual size with %s',
  async (kind) => {
    expect(await sizes(kind)).toEqual([16])
  },
)

test.each(['brief ones of a crowd', 'brief ones with long bodies'])(
  'it grows to the limit of the heap with %s',
  async (kind) => {
    expect(await sizes(kind)).toEqual([64])
  },
)

test('another thread grows to its own limit, though the main thread has come to its size', async () => {
  expect(await sizes('another thread')).toEqual([16, 8])
})

test.each(['few', 'brief ones with long bodies'])(
  'V8 does not learn to make things old at once with %s',
  async (kind) => {
    expect(await printed(kind, ['--trace-pretenuring-statistics'])).not.toMatch(/=> (?:maybe )?tenure/)
  },
)

test.each([
  ['alone where every core serves calls', availableParallelism(), true],
  ['with helpers where a core is to spare', 0, false],
])('a thread collects what is young %s', async (_, serving, isAlone) => {
  const lines = await printed('few', ['--trace-gc', '--trace-parallel-scavenge'], lateFlags(serving))
  const tasks = lines.split(/^.*: Scavenge .*$/m).map((before) => before.match(/scavenge\[/g)?.length ?? 0)
  expect(tasks.every((count) => count <= 1)).toBe(isAlone)
  expect(Math.max(...tasks)).toBeGreaterThan(0)
})
