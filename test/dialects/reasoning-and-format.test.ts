import { expect, test } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import { writeRequest } from '../../src/manifest/run/translate.ts'
import { servedBy } from '../../src/manifest/target.ts'
import { shippedFiles } from '../helpers/shipped.ts'

// Reasoning settings and formats that have a field of their own are in test/translation/cases/.

const files = await shippedFiles()

/** The body for a model that is asked for a reply by a schema. */
async function sent(target: string, more: Partial<NeutralRequest> = {}): Promise<JsonObject> {
  const slug = target.slice(0, target.indexOf('/'))
  const model = target.slice(slug.length + 1)
  const loaded = files.providers.find(({ provider }) => provider.slug === slug)
  if (!loaded) throw new Error(`there is no provider ${slug}`)
  const entry = files.catalog.find(slug, model)
  const request: NeutralRequest = {
    model,
    messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }],
    response_format: { type: 'json_schema', name: 'person', schema, strict: true },
    ...more,
    origin: { api: 'chat', body: {} },
  }
  return (await writeRequest(servedBy(loaded.provider, model), request, { model, ...(entry && { entry }) })).body
}

const schema: JsonObject = {
  type: 'object',
  properties: { name: { type: 'string', minLength: 1 } },
  required: ['name'],
  additionalProperties: false,
}

test('a schema is requested in the instructions where the family has no schemas, or not beside a search', async () => {
  const old = await sent('anthropic/claude-3-5-haiku-20241022')
  expect(old).not.toHaveProperty('output_config')
  expect(JSON.stringify(old.system)).toContain('minLength')
  const searching = await sent('anthropic/claude-haiku-4-5', { web_search: {} })
  expect(searching).not.toHaveProperty('output_config')
  expect(JSON.stringify(searching.system)).toContain('JSON schema')
  const grounded = await sent('google/gemini-2.5-flash', { web_search: {} })
  // Without a conversation it would be the only message.
  expect(grounded).not.toHaveProperty('generationConfig.responseJsonSchema')
  expect(JSON.stringify(grounded.systemInstruction)).toContain('JSON schema')
})
