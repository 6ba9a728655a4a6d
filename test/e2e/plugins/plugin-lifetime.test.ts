import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { describeEach } from '../../helpers/slow.ts'
import { eventually } from '../../helpers/time.ts'
import { storeIn } from '../money/budget-world.ts'

/** A plugin that writes down what becomes of it, and what it was lent. */
const diary = (word: string) => `
import { appendFileSync } from 'node:fs'
import { definePlugin } from 'inference-router/plugin'
import { line } from './diary/line.ts'

const note = (text: string) => appendFileSync(new URL('../diary.txt', import.meta.url), line('${word}', text))

export default definePlugin({
  setup(_, { values, fetch }) {
    note('set up')
    const lent = async () => {
      note(\`values \${await values.add('first of ${word}', { at: 1 }, 60_000)} \${JSON.stringify(await values.get('first of ${word}'))}\`)
      // Every thread has a name of its own: what one deletes, another may just have set.
      const own = crypto.randomUUID()
      await values.set(own, '${word}')
      await values.delete(own)
      note(\`gone \${await values.get(own)}\`)
      const { cause } = await fetch('http://127.0.0.1:8081/').then(() => ({ cause: undefined }), (error) => error)
      note(\`fetch \${cause?.message}\`)
    }
    void lent()
    return { async [Symbol.asyncDispose]() { note('ended') } }
  },
})
`
const line = 'export const line = (word: string, text: string): string => `${word}: ${text}\\n`\n'

const open: { end?(): Promise<unknown>; close?(): Promise<unknown> }[] = []
afterAll(async () => {
  for (const one of open.reverse()) await (one.end ?? one.close)?.()
})

const manifest = (url: string) => `slug: held
name: Held
base_url: ${url}
auth: { scheme: none }
dialect: openai-chat
unknown_models: pass
`

/** A router with the plugin, and a provider that answers when it is told to. */
async function world(threads: number) {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const provider: LoopbackProvider = await loopbackProvider(async (_, response) => {
    await released
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }]
    answerJson(response, { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices })
  })
  const files = {
    'providers/held.yaml': manifest(provider.url),
    'plugins/diary.ts': diary('first'),
    'plugins/diary/line.ts': line,
  }
  const router: TestRouter = await testRouter({ files, threads, settings: { plugins: [{ name: 'diary' }] } })
  open.push(provider, router)
  const notes = () => readFileSync(join(router.folder, 'diary.txt'), 'utf8').split('\n').slice(0, -1)
  const count = (note: string) => notes().filter((one) => one === note).length
  const ask = () =>
    router.call('/v1/chat/completions', { model: 'held/m', messages: [{ role: 'user', content: 'Hi' }] })
  return { provider, router, release, notes, count, ask }
}

describeEach(
  [
    { threads: 1, setups: 1 },
    // The books set them up as well, to know what is wrong before a line does.
    { threads: 2, setups: 3 },
  ],
  { slowIf: ({ threads }) => threads > 1 },
)('with $threads threads', ({ threads, setups }) => {
  test('plugins are lent values that all threads see, and a fetch to public addresses', async () => {
    const { router, count } = await world(threads)
    await eventually(() => {
      const gone = 'first: gone undefined'
      const refused =
        'first: fetch the address of 127.0.0.1 is not public, and config.yaml does not allow the host to this plugin'
      expect([count('first: set up'), count(gone), count(refused)]).toEqual([setups, setups, setups])
    })
    expect(count('first: values true {"at":1}')).toBe(1)
    expect(count('first: values false {"at":1}')).toBe(setups - 1)
    const store = await storeIn(router.folder)
    expect(await store.pluginValues.get('diary', 'first of first')).toBe('{"at":1}')
    await store.close()
  })

  test('a change is in use at once; the old one ends when the calls have ended that may use it', async () => {
    const { router, release, count, notes, ask } = await world(threads)
    const call = ask()
    await eventually(async () => expect((await router.call('/ready')).status).toBe(200))
    const before = router.snapshot().generation
    router.put('plugins/diary/line.ts', `${line}// changed\n`)
    await eventually(() => expect(router.snapshot().generation).toBeGreaterThan(before))
    router.put('plugins/diary.ts', `${diary('broken')} nonsense`)
    const told = await eventually(async () => {
      const { problems } = (await (await router.call('/ready')).json()) as { problems: string[] }
      expect(problems).toHaveLength(1)
      return problems
    })
    expect(told[0]).toMatch(/plugins\/diary\.ts:\d+:\d+: /)
    router.put('plugins/diary.ts', diary('second'))
    await eventually(() => expect(count('second: set up')).toBe(setups))
    expect(notes().join()).not.toContain('broken')
    const last = count('first: set up')
    expect(count('first: ended')).toBeLessThan(last)
    release()
    expect((await call).status).toBe(200)
    await eventually(() => expect(count('first: ended')).toBe(last))
    await router.stop(1_000)
    expect(count('second: ended')).toBe(setups)
  })
})
