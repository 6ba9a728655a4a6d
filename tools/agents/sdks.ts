import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import type { Place } from './clients.ts'

/** Asks for one answer, streamed or whole, with the retries that the SDK makes by default. */
export type SdkCall = (place: Omit<Place, 'home'>, isStreamed: boolean) => Promise<string>

/** Official SDKs by the names that the command takes. */
export const sdks: Readonly<Record<string, SdkCall>> = {
  'openai-sdk': openai,
  'anthropic-sdk': anthropic,
}

const messages: { role: 'user'; content: string }[] = [{ role: 'user', content: 'Hello.' }]

async function openai({ url, key, model }: Omit<Place, 'home'>, isStreamed: boolean): Promise<string> {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key })
  if (!isStreamed) return (await client.responses.create({ model, input: messages })).output_text
  const stream = await client.responses.create({ model, input: messages, stream: true })
  let text = ''
  let isComplete = false
  for await (const event of stream) {
    if (event.type === 'response.output_text.delta') text += event.delta
    isComplete ||= event.type === 'response.completed'
  }
  return isComplete ? text : ''
}

async function anthropic({ url, key, model }: Omit<Place, 'home'>, isStreamed: boolean): Promise<string> {
  const client = new Anthropic({ baseURL: url, apiKey: key })
  const request = { model, max_tokens: 1_000, messages }
  const message = isStreamed
    ? await client.messages.stream(request).finalMessage()
    : await client.messages.create(request)
  return message.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('')
}
