import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const strays = join(import.meta.dirname, '../../src/plugin/faults.ts')

/** A process that runs this, with its exit code and what it says. */
function run(script: string) {
  const text = `
    import { catchUncaughtErrors, countUncaughtErrors, inPlugin } from ${JSON.stringify(strays)}
    catchUncaughtErrors()
    countUncaughtErrors({ saw: (plugin, hook, fault, { err }) => console.log(plugin, hook, fault, err.message) })
    setTimeout(() => console.log('goes on'), 200)
    ${script}`
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', text], { encoding: 'utf8' })
  return { ended: status !== 0, said: stdout.trim().split('\n') }
}

test('what a plugin leaves behind and throws is counted and ends nothing', () => {
  const script = `inPlugin('leaky', () => {
    const timer = setInterval(() => { clearInterval(timer); throw new Error('of a timer') }, 1)
    void (async () => { await null; throw new Error('of nobody') })()
    setTimeout(() => Promise.reject(new Error('of both')), 20)
  })`
  expect(run(script)).toEqual({
    ended: false,
    said: [
      'leaky background threw of nobody',
      'leaky background threw of a timer',
      'leaky background threw of both',
      'goes on',
    ],
  })
})

test('any other error that nobody catches ends the process', () => {
  const { ended, said } = run(`inPlugin('other', () => {}); setTimeout(() => { throw new Error('ours') }, 1)`)
  expect([ended, said]).toEqual([true, ['']])
})
