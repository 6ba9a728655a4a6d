import { afterAll, expect, test } from 'vitest'
import { says } from '../e2e/plugins/plugin-world.ts'
import { type ShippedWorld, shippedWorld } from './shipped-world.ts'

let world: ShippedWorld | undefined
afterAll(() => world?.end())

test.each([false, true])('mask-pii: the provider gets placeholders, the client its data: stream %s', async (stream) => {
  world ??= await shippedWorld(() => [{ name: 'mask-pii', on_error: 'closed' }])
  world.steps.push(says('Wrote to <EM', 'AIL_', '1>, as <EMAIL_2> ', 'asked.'))
  const messages = [
    { role: 'system', content: 'You work for boss@corp.example.' },
    { role: 'user', content: 'Write to ann@corp.example.' },
  ]
  const { content, text } = await world.ask({ messages, stream })
  expect(content).toBe('Wrote to boss@corp.example, as ann@corp.example asked.')
  expect(text).not.toContain('EMAIL')
  const sent = world.received.at(-1)?.body
  expect(sent.messages).toEqual([
    { role: 'system', content: 'You work for <EMAIL_1>.' },
    { role: 'user', content: 'Write to <EMAIL_2>.' },
  ])
})
