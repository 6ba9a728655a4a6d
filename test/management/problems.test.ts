import { expect, onTestFinished, test } from 'vitest'
import { schemaOf, validator } from '../helpers/openapi.ts'
import { simulatorOnly, testRouter } from '../helpers/router.ts'
import { describeEach } from '../helpers/slow.ts'
import { eventually } from '../helpers/time.ts'
import { administration } from './administration.ts'

const matches = validator(schemaOf('KnownProblem'))

const faulty = `import { definePlugin } from 'inference-router/plugin'
export default definePlugin({ setup: () => ({ request() { throw new Error('broken') } }) })
`

describeEach([1, 2], { slowIf: (threads) => threads > 1 })('problems (%i threads)', (threads) => {
  test('have the place of the error and what is unavailable because of it', async () => {
    const files = { ...simulatorOnly, 'plugins/faulty.ts': faulty }
    const settings = { plugins: [{ name: 'faulty', on_error: 'open' }] }
    const router = await testRouter({ files, settings, threads })
    onTestFinished(() => router.end())
    const manage = administration(router)
    const problems = async () => {
      const { problems: found } = (await manage.get('/problems')).body as { problems: Record<string, unknown>[] }
      for (const one of found) expect(matches(one), JSON.stringify(matches.errors)).toBe(true)
      return found
    }
    expect(await problems()).toEqual([])
    router.put('providers/fresh.yaml', 'slug: fresh\nauth: { scheme: bearer, secret: sk-written-in-here }\n')
    router.put('providers/demo.yaml', `${simulatorOnly['providers/demo.yaml']}timeouts: { connect: often }\n`)
    await eventually(async () => expect((await problems()).length).toBeGreaterThan(1))
    const found = await problems()
    const ofNew = found.find(({ unavailable }) => (unavailable as string[]).length > 0)
    expect(ofNew).toMatchObject({
      kind: 'provider',
      place: expect.stringMatching(/^providers\/fresh\.yaml:\d+:\d+$/),
      line: expect.any(Number),
      column: expect.any(Number),
      severity: 'error',
      unavailable: ['fresh'],
    })
    expect(found.find(({ place }) => String(place).startsWith('providers/demo.yaml'))).toMatchObject({
      effect: 'the previous version stays in use',
      unavailable: [],
    })
    expect(JSON.stringify(found)).not.toContain('sk-written')
  })

  test('are also hooks of plugins that fail on every call', async () => {
    const files = { ...simulatorOnly, 'plugins/faulty.ts': faulty }
    const settings = { plugins: [{ name: 'faulty', on_error: 'open' }] }
    const router = await testRouter({ files, settings, threads })
    onTestFinished(() => router.end())
    const manage = administration(router)
    const messages = [{ role: 'user', content: 'Hello' }]
    await (await router.call('/v1/chat/completions', { model: 'demo/echo', messages })).text()
    await eventually(async () => {
      const { problems } = (await manage.get('/problems')).body as { problems: object[] }
      expect(problems).toMatchObject([{ kind: 'hook', plugin: 'faulty', unavailable: [] }])
    })
  })
})
