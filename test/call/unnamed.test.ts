import { expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { ClientApi } from '../../src/api/client-api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { sentTo, shippedTargets } from '../helpers/sent.ts'

const hi = { messages: [{ role: 'user', content: 'Hi' }] }
const quiet: readonly [api: ClientApi, body: JsonObject][] = [
  [chat, { ...hi, store: false, metadata: { team: 'a' }, prompt_cache_key: 'k', reasoning_effort: 'none', n: 1 }],
  [
    responses,
    { input: 'Hi', store: false, metadata: { team: 'a' }, prompt_cache_key: 'k', reasoning: { effort: 'none' } },
  ],
  [messages, { ...hi, max_tokens: 99, thinking: { type: 'disabled' }, service_tier: 'auto' }],
]

test.each(quiet)('what the router does itself, and what asks for nothing, is no loss: %#', async (api, body) => {
  for (const id of await shippedTargets()) expect({ [id]: (await sentTo(id, api, body)).names }).toEqual({ [id]: [] })
})

test('what is said beside a hint is', async () => {
  const body = { ...hi, prompt_cache_key: 'k', prompt_cache_retention: '24h', store: true }
  for (const id of ['groq/openai/gpt-oss-120b', 'google/gemini-3.5-flash', 'cohere/command-a-03-2025']) {
    expect(await (await sentTo(id, chat, body)).names.toSorted()).toEqual(['prompt_cache_retention', 'store'])
  }
})
