import { definePlugin, Refusal } from 'inference-router/plugin'
import { openPlugin } from 'inference-router/plugin/test'
import { describe, expect, test } from 'vitest'
import type { Hold } from '../../src/plugin/contract.ts'
import { HeldEvents } from '../../src/plugin/held-events.ts'

describe('a plugin that guards', () => {
  test('is refused unless it declares what happens when it fails', async () => {
    const setup = () => ({})
    await expect(openPlugin(definePlugin({ guards: true, setup }))).rejects.toThrow("must declare `onError: 'closed'`")
    await expect(openPlugin(definePlugin({ guards: true, onError: 'open', setup }))).rejects.toThrow('closed')
    await using tested = await openPlugin(definePlugin({ guards: true, onError: 'closed', setup }))
    expect((await tested.call()).text).toBe('Hello.')
  })

  test.each([
    [{ characters: 0 }],
    [{ characters: 1.5 }],
    [{ characters: 1e6 }],
    [{ sentences: false }],
    [{ characters: 1, sentences: true }],
    [{ characters: 1, maxMs: 0 }],
    [{ characters: 1, maxMs: 1e9 }],
    [{ words: 1 }],
    [5],
  ])('cannot hold back %j', async (hold) => {
    const plugin = definePlugin({ setup: () => ({ hold: hold as unknown as Hold, check: () => undefined }) })
    await expect(openPlugin(plugin)).rejects.toThrow('`hold` must be')
  })

  test('cannot hold back what it does not look at', async () => {
    const plugin = definePlugin({ setup: () => ({ hold: { characters: 1 } }) })
    await expect(openPlugin(plugin)).rejects.toThrow('`hold` must be')
  })
})

describe('a plugin under test', () => {
  const withheld = definePlugin({
    setup: () => ({
      hold: { characters: 8 },
      check: ({ texts }) => (texts.some(({ text }) => text.includes('plum')) ? new Refusal(451, 'No.') : undefined),
    }),
  })

  test('refuses a whole answer', async () => {
    await using tested = await openPlugin(withheld)
    expect(await tested.call({ answer: 'A plum.' })).toMatchObject({ refusal: { status: 451 }, text: '' })
    expect(await tested.call({ answer: 'A pear.' })).toMatchObject({ text: 'A pear.' })
  })

  test.each([1, 2, 3, 5, 100])(
    'refuses a stream in pieces of %i, before any of what it refuses is sent',
    async (size) => {
      await using tested = await openPlugin(withheld)
      const { refusal, text } = await tested.call({ answer: `${'Fruit is good. '.repeat(5)}A plum.`, stream: [size] })
      expect(refusal?.status).toBe(451)
      expect(text).not.toMatch(/p(l|lu|lum)?$/)
      expect(`${'Fruit is good. '.repeat(5)}A plum.`.startsWith(text)).toBe(true)
      expect((await tested.call({ answer: 'Pears. '.repeat(9), stream: [size] })).text).toBe('Pears. '.repeat(9))
    },
  )
})

describe('events that are held', () => {
  const sent = (held: HeldEvents, all = false) =>
    held
      .release(all)
      .flat()
      .map((event) => ('text' in event ? event.text : '-'))
      .join('')

  test('wait for so many characters of the same text, whatever is written beside it, up to eight times as many', () => {
    const held = new HeldEvents({ characters: 4 })
    held.add([{ at: 1, text: 'ab' }])
    held.add([{ at: 2, text: 'xxxx' }])
    expect(held.isReady).toBe(false)
    held.add([{ at: 1, text: 'cdef' }])
    expect(held.isReady).toBe(true)
    expect(sent(held)).toBe('ab')
    for (let count = 0; count < 8; count++) held.add([{ at: 3, text: 'yyyy' }])
    expect(sent(held).startsWith('xxxxcdef')).toBe(true)
  })

  test('keep their order: what has no text waits for the text before it', () => {
    const held = new HeldEvents({ characters: 4 })
    held.add([{ text: 'ab' }])
    held.add([{ media: { type: 'image', data: 'QQ==' } }])
    expect(held.isReady).toBe(false)
    held.add([{ text: 'cdef' }])
    expect(sent(held)).toBe('ab-')
    expect(sent(held, true)).toBe('cdef')
  })

  test('are shown again with what follows, and with what was sent before', () => {
    const held = new HeldEvents({ characters: 2 })
    for (const text of ['ab', 'cd']) held.add([{ text }])
    expect(held.texts()).toEqual([{ kind: 'text', text: 'abcd', before: '' }])
    sent(held)
    held.add([{ text: 'ef' }])
    expect(held.texts()).toEqual([{ kind: 'text', text: 'cdef', before: 'ab' }])
  })

  test('take no longer when a text is long: 200,000 events in sentences', () => {
    const held = new HeldEvents({ sentences: true })
    let count = 0
    for (let index = 0; index < 200_000; index++) {
      held.add([{ text: 'word ' }])
      if (held.isReady) count += held.release(false).length
    }
    expect(count).toBeGreaterThan(199_000)
  })
})
