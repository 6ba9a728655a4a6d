import { expect, test } from 'vitest'
import { requireSameTerms } from '../../src/call/attempt/sent-body.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { Target } from '../../src/manifest/target.ts'

const target = { provider: { slug: 'google', restricted: [] } } as unknown as Target
const requireSame = (before: JsonObject, after: JsonObject) => () => requireSameTerms(after, before, target)

test.each<[string, JsonObject]>([
  ['generationConfig.candidateCount', { generationConfig: { candidateCount: 8 } }],
  ['generationConfig.responseModalities', { generationConfig: { responseModalities: ['IMAGE'] } }],
  ['generationConfig.maxOutputTokens', { generationConfig: { maxOutputTokens: 8 } }],
  ['serviceTier', { serviceTier: { type: 'priority' } }],
  ['service_tier', { service_tier: 'priority' }],
  ['toolConfig.tools', { toolConfig: { tools: [{ systemTool: { name: 'nova_grounding' } }] } }],
  ['mcp_servers', { mcp_servers: [{ url: 'https://mcp.example' }] }],
  ['stream', { stream: true }],
  ['n', { n: 2 }],
])('a plugin cannot add, change or remove `%s`, in whatever format', (path, terms) => {
  const message = `the body has another \`${path}\``
  expect(requireSame({ contents: [] }, { contents: [], ...terms })).toThrow(message)
  expect(requireSame({ contents: [], ...terms }, { contents: [] })).toThrow(message)
  expect(requireSame({ ...terms, contents: [] }, { contents: [], ...structuredClone(terms) })).not.toThrow()
})

test.each<[string, JsonObject]>([
  ['the prompt', { contents: [{ parts: [{ text: 'Hi' }] }], system: 'Be kind.' }],
  ['how it is sampled', { generationConfig: { temperature: 0, seed: 7 } }],
  [
    'a schema whose members have such names',
    { response_format: { json_schema: { schema: { properties: { n: {} } } } } },
  ],
  ['tags, whatever their names are', { metadata: { model: 'a', n: '2' }, labels: { tools: 'b' } }],
])('a plugin can change %s', (_, edit) => {
  expect(requireSame({ contents: [] }, { contents: [], ...edit })).not.toThrow()
})
