import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { says } from '../e2e/plugins/plugin-world.ts'
import { answerJson, loopbackProvider } from '../helpers/provider.ts'
import { alone, testRouter } from '../helpers/router.ts'
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

describe('mask-pii in the words of other APIs', async () => {
  const provider = await loopbackProvider(({ path, body }, response) => {
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 }
    const head = { id: 'x_1', model: body.model, usage }
    if (path.endsWith('/messages')) {
      const content = [{ type: 'text', text: 'Hi' }]
      answerJson(response, { ...head, type: 'message', role: 'assistant', content, stop_reason: 'end_turn' })
      return
    }
    const call = {
      type: 'mcp_call',
      id: 'mcp_2',
      server_label: 's',
      name: 'send',
      arguments: '{"to":"<EMAIL_1>"}',
      output: 'To <EMAIL_1>.',
    }
    answerJson(response, { ...head, object: 'response', status: 'completed', created_at: 1, output: [call] })
  })
  const own = { base_url: provider.url, secret: 's' }
  const root = join(import.meta.dirname, '../..')
  const folderNames = ['providers', 'catalog', 'plugins']
  const folders = Object.fromEntries(folderNames.map((name) => [name, join(root, name)]))
  const router = await testRouter({
    providers: alone({ anthropic: own, 'openai-responses': own }),
    settings: { folders, plugins: [{ name: 'mask-pii' }] },
  })
  afterAll(async () => {
    await router.end()
    await provider.close()
  })

  test('items of tools go out with placeholders and come back with the data', async () => {
    const said = 'ann@corp.example'
    const input = [
      { role: 'user', content: 'Hi' },
      { type: 'shell_call', id: 'sh_1', call_id: 'c1', status: 'completed', action: { commands: [`mail ${said}`] } },
      {
        type: 'shell_call_output',
        call_id: 'c1',
        output: [{ stdout: `Sent to ${said}`, stderr: '', outcome: { type: 'exit', exit_code: 0 } }],
      },
      { type: 'mcp_call', id: 'mcp_1', server_label: 's', name: 'find', arguments: `{"who":"${said}"}`, output: said },
      { role: 'user', content: 'Again' },
    ]
    const response = await router.call('/v1/responses', { model: 'openai-responses/gpt-5', input })
    // A block that a plugin has changed is sealed, for the client to send back.
    const sealed = /"router1\.([^"]+)"/.exec(await response.text())?.[1] ?? ''
    const block = Buffer.from(sealed, 'base64url').toString()
    expect([response.status, block]).toEqual([200, expect.stringContaining('"output":"To ann@corp.example."')])
    const sent = JSON.stringify(provider.received.at(-1)?.body)
    expect(sent).not.toContain(said)
    for (const part of [
      'mail <EMAIL_1>',
      'Sent to <EMAIL_1>',
      '\\"who\\":\\"<EMAIL_1>\\"',
      '"call_id":"c1"',
      '"exit_code":0',
    ])
      expect(sent).toContain(part)
  })

  test('documents of text go out with placeholders', async () => {
    const source = { type: 'text', media_type: 'text/plain', data: 'Ask ann@corp.example.' }
    const content = [
      { type: 'document', source },
      { type: 'text', text: 'Whom?' },
    ]
    const body = { model: 'anthropic/claude-haiku-4-5', max_tokens: 50, messages: [{ role: 'user', content }] }
    expect((await router.call('/v1/messages', body)).status).toBe(200)
    const sent = JSON.stringify(provider.received.at(-1)?.body)
    expect(sent.replace(/[A-Za-z0-9+/=]{20,}/g, (data) => Buffer.from(data, 'base64').toString())).toContain(
      'Ask <EMAIL_1>.',
    )
    expect(sent).not.toContain('ann@corp')
  })
})
