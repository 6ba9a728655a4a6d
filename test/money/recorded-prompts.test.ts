import { afterAll, describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { ClientApi } from '../../src/api/client-api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import { isObject, type JsonObject } from '../../src/core/json.ts'
import { promptTexts } from '../../src/money/estimate-tokens.ts'
import { boundedCall, promptBound } from '../../src/money/max-cost.ts'
import { openTokenizer } from '../../src/tokenizer/tokenizer.ts'
import { type Recording, recordings, recordingsMissing } from '../helpers/recordings.ts'
import { shippedFiles } from '../helpers/shipped.ts'
import { rawUsage } from './recorded-usage.ts'

/** Recorded exchanges whose requests are in the format of a client API, and the provider whose manifest describes the model. */
const folders: { [folder: string]: { api: ClientApi; slug?: string } } = {
  'openai-chat': { api: chat },
  'azure-openai': { api: chat, slug: 'azure' },
  deepseek: { api: chat },
  groq: { api: chat },
  mistral: { api: chat },
  'openai-compatible': { api: chat },
  openrouter: { api: chat },
  perplexity: { api: chat },
  'openai-responses': { api: responses, slug: 'openai-responses' },
  'anthropic-messages': { api: messages, slug: 'anthropic' },
}

const { providers, catalog } = await shippedFiles()
const tokenizer = openTokenizer()
afterAll(() => tokenizer.close())

describe.skipIf(recordingsMissing)('no recorded prompt was longer than its bound, by bytes or by tokens', () => {
  test.each(Object.entries(folders))('%s', async (folder, { api, slug }) => {
    const longer: string[] = []
    let seen = 0
    for (const recording of recordings(folder)) {
      const billed = billedPrompt(recording)
      // Long texts of some are shortened.
      if (billed === undefined || recording.note?.includes('shortened')) continue
      seen++
      const name = slug ?? recording.provider
      const provider = providers.find((one) => one.provider.slug === name)?.provider
      const model = recording.model ?? ''
      const entry = catalog.find(name, model)
      const request = api.read(namedFormat({ model: 'm', max_tokens: 1, ...recording.request?.body }))
      const target = { model, ...(provider && { provider }), ...(entry && { entry }) }
      const counted = await tokenizer.count(promptTexts(request))
      const bounds = [undefined, counted].map((tokens) => promptBound(boundedCall(request, 0, tokens), target))
      for (const bound of bounds) if (billed > bound) longer.push(`${recording.case}: ${billed} of at most ${bound}`)
    }
    expect(seen).toBeGreaterThan(0)
    expect(longer).toEqual([])
  })
})

/** Perplexity's schemas have no name. */
function namedFormat(body: JsonObject): JsonObject {
  const { response_format: format } = body
  const schema = isObject(format) && isObject(format.json_schema) ? format.json_schema : undefined
  return schema
    ? { ...body, response_format: { ...(format as JsonObject), json_schema: { name: 'n', ...schema } } }
    : body
}

/** The tokens of the prompt by the provider's own count, cached or not. */
function billedPrompt(recording: Recording): number | undefined {
  if (recording.response.status !== 200 || !recording.request?.body) return undefined
  const usage = rawUsage(recording)
  const count = usage?.prompt_tokens ?? usage?.input_tokens
  if (typeof count !== 'number') return undefined
  const { cache_read_input_tokens: read = 0, cache_creation_input_tokens: written = 0 } = usage
  return count + read + written
}
