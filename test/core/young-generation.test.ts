import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { serverFlags } from '../../src/cli/restart.ts'

const run = promisify(execFile)

/** Megabytes of a semi-space that V8 has come to in a process of its own, thread by thread. */
async function sizes(kind: string): Promise<number[]> {
  return (await printed(kind)).trim().split('\n').map(Number)
}

async function printed(kind: string, ...flags: string[]): Promise<string> {
  const child = join(import.meta.dirname, 'young-generation-child.ts')
  const { stdout } = await run(process.execPath, [...serverFlags, ...flags, child, kind], { timeout: 60_000 })
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
    expect(await printed(kind, '--trace-pretenuring-statistics')).not.toMatch(/=> (?:maybe )?tenure/)
  },
)
