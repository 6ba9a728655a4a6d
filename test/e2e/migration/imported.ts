import type { ServerResponse } from 'node:http'
import OpenAI from 'openai'
import { pino } from 'pino'
import { onTestFinished } from 'vitest'
import { startRouter } from '../../../src/app/router.ts'
import { dotEnvBeside } from '../../../src/cli/read-config.ts'
import { answerJson, type Received } from '../../helpers/provider.ts'
import { cache } from '../../helpers/router.ts'

/** Starts a router with what was imported; `as` is a client with a key. */
export async function imported(config: string, env: NodeJS.ProcessEnv) {
  const router = await startRouter({
    configPath: config,
    port: 0,
    env: { ...dotEnvBeside(config), ...env },
    log: pino({ level: 'silent' }),
    earlier: { known: new Map(), cache },
  })
  onTestFinished(() => router.stop(1_000))
  const as = (apiKey: string) => new OpenAI({ baseURL: `${router.url}/v1`, apiKey, maxRetries: 0 })
  const ask = async (apiKey: string, model: string) => {
    const messages = [{ role: 'user' as const, content: 'Hi' }]
    const { choices } = await as(apiKey).chat.completions.create({ model, messages })
    return choices[0]?.message.content
  }
  return { router, as, ask }
}

/** Answers a conversation with the first step of its path, the credential and the model, in the format of the path. */
export function echo({ path, body, headers }: Received, response: ServerResponse): void {
  const credential = headers['x-api-key'] ?? headers['api-key'] ?? headers.authorization ?? 'nobody'
  const text = `${path.split('/')[1]} ${String(credential).replace('Bearer ', '')} ${body.model}`
  if (path.startsWith('/failing')) answerJson(response, { error: { message: 'no GPU is left' } }, 500)
  else if (path.endsWith('/messages')) {
    const content = [{ type: 'text', text }]
    const usage = { input_tokens: 9, output_tokens: 3 }
    const message = { id: 'm', type: 'message', role: 'assistant', model: body.model, content, stop_reason: 'end_turn' }
    answerJson(response, { ...message, usage })
  } else {
    const choices = [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }]
    const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 }
    answerJson(response, { id: 'c', object: 'chat.completion', created: 1, model: body.model, choices, usage })
  }
}
