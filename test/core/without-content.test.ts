import { describe, expect, test } from 'vitest'
import { withoutContent } from '../../src/core/without-content.ts'

const messages = [
  { role: 'system', content: 'You are a helpful clerk of the bank.' },
  { role: 'user', content: [{ type: 'text', text: 'My account is 4711 and my name is Ada.' }] },
]

describe('the message of a provider', () => {
  test.each([
    ["Invalid value: 'xhigh'. Supported values are: 'low', 'medium'.", undefined],
    ["Cannot read 'My account is 4711 and my name is Ada.' as a tool.", "Cannot read '[content]' as a tool."],
    ['The text "account is 4711 and my name" is too short', 'The text "[content]" is too short'],
    ['messages.1.content.0.text: Field required', undefined],
    ['You are a helpful clerk of the bank. You are a helpful clerk of the bank.', '[content] [content]'],
    ['The model does not support tools', undefined],
  ])('is stored without what it repeats of the request: %s', (message, expected) => {
    expect(withoutContent(message, { model: 'acme/m1', messages })).toBe(expected ?? message)
  })

  test('loses short phrases that are a whole text of the request, and no single words', () => {
    const content = { input: ['PIN is 4711', 'invalid'] }
    expect(withoutContent("invalid input 'PIN is 4711'", content)).toBe("invalid input '[content]'")
  })

  test('keeps names of models, tools and types, which say what was wrong', () => {
    const content = {
      model: 'acme/a-very-long-model-name',
      tools: [{ type: 'function', name: 'search_all_of_the_customers' }],
    }
    const message = "The model 'acme/a-very-long-model-name' cannot call search_all_of_the_customers."
    expect(withoutContent(message, content)).toBe(message)
  })

  test('loses a sentence wherever it is in the request, and is searched quickly in spite of a file beside it', () => {
    const sentence = 'the treasure is under the oak'
    const file = { type: 'image', data: 'A'.repeat(20_000_000) }
    for (const content of [
      { name: sentence },
      { id: [sentence] },
      { a: { data: sentence } },
      [file, { type: sentence }],
    ])
      expect(withoutContent(`Unknown: ${sentence}!`, content)).toBe('Unknown: [content]!')
  })

  test('is cut at its first quote where the request is too long to be searched', () => {
    const content = { messages: [{ role: 'user', content: 'tell me a secret '.repeat(200_000) }] }
    expect(withoutContent("The text 'zebra' is wrong", content)).toBe('The text [content]')
    expect(withoutContent('The service is overloaded', content)).toBe('The service is overloaded')
  })

  test('is searched for the content of a request of a million characters within 100 ms', () => {
    const content = {
      messages: Array.from({ length: 1_000 }, (_, at) => ({ role: 'user', content: `${at} word `.repeat(150) })),
    }
    const message = 'word '.repeat(200)
    const begun = performance.now()
    withoutContent(message, content)
    expect(performance.now() - begun).toBeLessThan(100 * Number(process.env.TEST_TIME_FACTOR ?? 1))
  })
})
