import { describe, expect, test } from 'vitest'
import { Repeated } from '../../src/call/reply/repeated.ts'
import type { ProviderEvent } from '../../src/core/events.ts'

type Shown = ConstructorParameters<typeof Repeated>[0]

/** The new parts of these events after a broken answer of which this was shown, and whether the answers differ. */
function filtered(shown: Shown, ...events: ProviderEvent[]) {
  const repeated = new Repeated(shown)
  return { rest: events.map((event) => repeated.rest(event)), differs: repeated.differs }
}

describe('of an answer that begins again', () => {
  test('only the text that was not shown is new', () => {
    expect(filtered({ text: 'Hello' }, { text: 'Hel' }, { text: 'lo wor' }, { text: 'ld' })).toEqual({
      rest: [undefined, { text: ' wor' }, { text: 'ld' }],
      differs: false,
    })
  })

  test('only the reasoning that was not shown is new', () => {
    const events = [{ reasoning: { text: 'Think' } }, { reasoning: { text: 'ing' } }, { text: 'Hi' }]
    expect(filtered({ text: '', reasoning: 'Thinki' }, ...events)).toEqual({
      rest: [undefined, { reasoning: { text: 'ng' } }, { text: 'Hi' }],
      differs: false,
    })
  })

  test.each<[string, Shown, ProviderEvent]>([
    ['has another text', { text: 'Hello' }, { text: 'Hullo' }],
    ['has another reasoning', { text: '', reasoning: 'One' }, { reasoning: { text: 'Two' } }],
    ['has a text before the reasoning that was shown is over', { text: 'Hi', reasoning: 'One' }, { text: 'Hi' }],
    ['goes on to think although a text was shown', { text: 'Hi', reasoning: 'O' }, { reasoning: { text: 'One' } }],
    ['ends before the text that was shown', { text: 'Hello' }, { finish: 'stop' }],
    ['calls a tool before the text that was shown', { text: 'Hello' }, { tool: { id: 'a', name: 'f' } }],
  ])('an answer that %s differs', (_, shown, event) => {
    expect(filtered(shown, event).differs).toBe(true)
  })

  test.each<[string, Shown, ProviderEvent]>([
    ['opens', { text: 'Hello' }, { id: 'r', created: 1 }],
    ['ends where only blanks were shown', { text: ' ', isSpace: true }, { finish: 'stop' }],
    ['has other blanks', { text: ' ', isSpace: true }, { text: '\n\nHi' }],
  ])('an answer that %s does not differ', (_, shown, event) => {
    expect(filtered(shown, event).differs).toBe(false)
  })
})
