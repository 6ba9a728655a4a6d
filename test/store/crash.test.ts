import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { testEach } from '../helpers/slow.ts'
import { temporaryFile } from './temporary.ts'

testEach([1, 2, 3], { slowIf: (round) => round > 1 })(
  'a process that is killed in the middle loses no settled call and counts none twice (%i)',
  async () => {
    const path = temporaryFile('router.sqlite')
    const settled = await settleUntilKilled(path, 2_000)

    const store = await openStore(`sqlite:${path}`)
    try {
      const rows = await Array.fromAsync(store.ledger.each({ key: 'key-1' }))
      const written = new Set(rows.map(({ id }) => id))
      expect(settled.filter((id) => !written.has(id))).toEqual([])
      expect(rows.length).toBe(written.size)
      const at = rows[0]?.at ?? 0
      expect(await store.spend.ofKey('key-1', at)).toBe(BigInt(rows.length) * 1_000n)
      expect(await store.spend.ofOrganization('org-1', at)).toBe(BigInt(rows.length) * 1_000n)
    } finally {
      await store.close()
    }
  },
)

/** The ids of the calls that a process reported as settled before it was killed, after at least so many. */
async function settleUntilKilled(path: string, least: number): Promise<string[]> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'crash-child.ts'), path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  let output = ''
  for await (const text of child.stdout.setEncoding('utf8')) {
    output += text
    if (output.length > least * 37) child.kill('SIGKILL')
  }
  expect(await ended).toEqual([null, 'SIGKILL'])
  const lines = output.split('\n')
  expect(lines.length).toBeGreaterThan(least)
  // The text after the last line end may be half an id.
  return lines.slice(0, -1)
}
