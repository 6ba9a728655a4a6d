import { afterAll, describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { ClientApi } from '../../src/api/client-api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { Part } from '../../src/core/parts.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import { writeRequest } from '../../src/manifest/run/translate.ts'
import { schemaMissing, violations } from '../api/chatSchema.ts'
import { recordings, recordingsMissing } from '../helpers/recordings.ts'
import { shippedFiles } from '../helpers/shipped.ts'
import { slow } from '../helpers/slow.ts'
import { chatSchemaMissing, chatViolations as cohereViolations } from './cohere-v2-reader.ts'
import { pairingFaults, readers } from './conversation-readers.ts'
import { violations as converseViolations, serviceModelMissing } from './converse-model.ts'
import { generateSchemaMissing, generateViolations } from './generate-schema.ts'
import { messagesSchemaMissing, messagesViolations } from './messages-schema.ts'
import { chatViolations as ollamaViolations } from './ollama-reader.ts'
import { responsesSchemaMissing, responsesViolations } from './responses-schema.ts'

/** A provider of each format with a model of it, and the publisher's requirements for a body. */
const ways: {
  slug: string
  model: string
  dialect: string
  faults: (body: JsonObject) => string[]
  missing?: string | undefined
}[] = [
  {
    slug: 'openai',
    model: 'gpt-4o-mini',
    dialect: 'openai-chat',
    faults: (body) => violations('CreateChatCompletionRequest', body),
    missing: schemaMissing,
  },
  {
    slug: 'openai-responses',
    model: 'gpt-5.4',
    dialect: 'openai-responses',
    faults: responsesViolations,
    missing: responsesSchemaMissing,
  },
  {
    slug: 'anthropic',
    model: 'claude-sonnet-4-5',
    dialect: 'anthropic-messages',
    faults: messagesViolations,
    missing: messagesSchemaMissing,
  },
  {
    slug: 'google',
    model: 'gemini-3.5-flash',
    dialect: 'gemini',
    faults: generateViolations,
    missing: generateSchemaMissing,
  },
  {
    slug: 'bedrock',
    model: 'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
    dialect: 'bedrock-converse',
    faults: (body) => converseViolations({ modelId: 'm', ...body }, 'ConverseRequest'),
    missing: serviceModelMissing,
  },
  {
    slug: 'cohere',
    model: 'command-a-03-2025',
    dialect: 'cohere-v2',
    faults: cohereViolations,
    missing: chatSchemaMissing,
  },
  { slug: 'ollama', model: 'qwen3', dialect: 'ollama', faults: ollamaViolations },
  { slug: 'mistral', model: 'mistral-large-latest', dialect: 'openai-chat', faults: () => [] },
]
const clientApis: { [folder: string]: ClientApi } = {
  'openai-chat': chat,
  'openai-responses': responses,
  'anthropic-messages': messages,
}

const files = await shippedFiles()
const providers = new Map(files.providers.map(({ provider }) => [provider.slug, provider]))

const counts: { [folder: string]: { [slug: string]: string } } = {}
afterAll(() => {
  if (!recordingsMissing) console.table(counts)
})

describe.skipIf(recordingsMissing)(
  'every recorded request reaches every format valid, with its words and its calls',
  () => {
    for (const [folder, api] of Object.entries(clientApis)) {
      const requested = recordings(folder).filter(({ request, response }) => request?.body && response.status === 200)
      // A body of the provider's own format is edited, not translated.
      for (const { slug, model, dialect, faults, missing } of ways.filter(
        (way) => providers.get(way.slug)?.sameAs !== api.api,
      )) {
        test(`${folder} → ${slug}`, slug === 'anthropic' || slug === 'google' ? {} : slow, async () => {
          const provider = providers.get(slug)
          if (!provider) throw new Error(`there is no provider ${slug}`)
          const entry = files.catalog.find(slug, model)
          const wrong: string[] = []
          for (const recording of requested) {
            // Clouds name the model in the path.
            const request = api.read({ model, ...recording.request?.body })
            const { body, dropped } = await writeRequest(provider, request, { model, ...(entry && { entry }) })
            if (!missing) wrong.push(...faults(body).map((fault) => `${recording.case}: ${fault}`))
            const turns = readers[dialect]?.(body) ?? []
            wrong.push(...pairingFaults(turns).map((fault) => `${recording.case}: ${fault}`))
            wrong.push(
              ...lostTexts(request, body, dropped).map((words) => `${recording.case}: lost without a word: ${words}`),
            )
          }
          counts[folder] = {
            ...counts[folder],
            [slug]: missing ? `${requested.length} (no schema)` : `${requested.length}`,
          }
          expect(wrong).toEqual([])
        })
      }
    }
  },
)

/** Texts and names of calls that neither arrive nor are reported. */
function lostTexts(request: NeutralRequest, body: JsonObject, dropped: readonly string[]): string[] {
  const arrived = JSON.stringify(body)
  const parts = [...(request.system ?? []), ...request.messages.flatMap((message) => message.parts)]
  const reported = (part: Part) => dropped.some((field) => field === `parts.${part.type}`)
  return parts.flatMap((part) => {
    const words = part.type === 'text' ? part.text.trim() : part.type === 'tool_call' ? part.name : ''
    const found = words === '' || arrived.includes(JSON.stringify(words).slice(1, -1))
    return found || reported(part) ? [] : [words.slice(0, 60)]
  })
}
