import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { withLookups } from '../../src/access/lookups.ts'
import { fieldNames } from '../../src/api/operations/field-names.ts'
import { restrictedTargets } from '../../src/call/targets/restricted-targets.ts'
import { RouterError } from '../../src/core/errors.ts'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'
import { type Operation, operations } from '../../src/core/operation.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import type { Target } from '../../src/manifest/target.ts'
import '../helpers/fixed-seed.ts'
import { shippedFiles } from '../helpers/shipped.ts'
import { publishedSpec, specMissing } from '../helpers/specs.ts'

// What an operation does not know may go to a provider in its own words, but never what multiplies or replaces what is paid for.

let providers: Provider[]

beforeAll(async () => {
  const { providers: loaded } = await shippedFiles()
  providers = loaded.flatMap(({ provider }) => [provider, ...(provider.variants ?? []).map((one) => one.provider)])
})

const names = Object.keys(operations) as Operation[]

/** The providers whose endpoint for an operation gets the body in the words of the API, or those that get another one. */
function providersOf(operation: Operation, isEdited: boolean): Provider[] {
  return providers.filter((provider) => {
    const endpoint = provider.operations?.[operation]
    return endpoint?.offered && (endpoint.request === undefined) === isEdited
  })
}

async function refusal(provider: Provider, operation: Operation, body: JsonObject): Promise<RouterError | undefined> {
  const held = { holders: async () => [] }
  const target: Target = { provider, model: 'm' }
  try {
    const account = { isListed: () => true, isOwn: async () => true }
    const call = {
      api: 'chat' as const,
      account,
      operation,
      body,
      mayStore: false,
      resources: { body, uses: [] },
      organization: 'o',
      held,
      at: 0,
    }
    await withLookups((lookups) => restrictedTargets([target], { ...call, lookups }))
    return undefined
  } catch (thrown) {
    if (thrown instanceof RouterError) return thrown
    throw thrown
  }
}

const paramAt = async (slug: string, operation: Operation, body: JsonObject) => {
  const provider = providers.find((one) => one.slug === slug) as Provider
  return (await refusal(provider, operation, body))?.param
}

const multiplying: readonly (readonly [Operation, JsonObject])[] = [
  ...['batch_size', 'num_images', 'max_images', 'samples', 'n_samples', 'numImages', 'num_outputs', 'batch_count'].map(
    (name) => ['image', { [name]: 4 }] as const,
  ),
  ['image', { sequential_image_generation: 'auto', sequential_image_generation_options: { max_images: 15 } }],
  ['image', { width: 4096, height: 4096 }],
  ['image', { image_size: '4K' }],
  ['image', { steps: 100 }],
  ['image', { upscale_factor: 4 }],
  ['image', { image_loras: [{ path: 'x' }] }],
  ['image_edit', { num_images: 4 }],
  ['embed', { n: 4 }],
  ['speech', { repeat: 9 }],
  ['complete', { num_return_sequences: 4, number: 3 }],
  ['decide', { samples: 9 }],
  ['moderate', { count: 3 }],
]
const replacing: readonly (readonly [Operation, JsonObject])[] = [
  ...['url', 'file_url', 'file_id', 'audio_url', 'audio', 'input_audio', 'audioUrl', 'media_path', 'uri'].map(
    (name) => ['transcribe', { [name]: 'x' }] as const,
  ),
  ['transcribe', { source: { location: 'https://a.example/long.mp3' } }],
  ['transcribe', { options: '{"from":"https://a.example/long.mp3"}' }],
  ['image', { image_url: 'x' }],
  ['image', { reference_images: ['x'] }],
  ['speech', { text: 'x' }],
  ['speech', { ref_audio: 'x' }],
  ['embed', { texts: ['x'] }],
  ['embed', { lora: 'x' }],
  ['complete', { prompt_embeds: 'x' }],
  ['complete', { messages: [{ role: 'user' }] }],
  ['moderate', { safety_model: 'x' }],
  ['embed', { webhook: 'x' }],
]
/** What conversations read, and operations do not. */
const ofConversations: readonly (readonly [Operation, JsonObject])[] = [
  ['decide', { tools: [{ type: 'web_search' }] }],
  ['decide', { reasoning_effort: 'high' }],
  ['image', { max_tokens: 100_000 }],
  ['moderate', { web_search_options: { search_context_size: 'high' } }],
  ['embed', { modalities: ['audio'] }],
]
const misspelt: readonly (readonly [Operation, JsonObject])[] = [
  ['image', { Quality: 'hd' }],
  ['image', { Size: '4096x4096' }],
  ['image', { N: 10 }],
  ['image', { ' n': 10 }],
  ['transcribe', { File: 'x' }],
  ['complete', { Max_Tokens: 9 }],
]
const harmless: readonly (readonly [Operation, JsonObject])[] = [
  ['image', { negative_prompt: 'a dog, https://a.example', guidance_scale: 7, watermark: false, scheduler: 'x' }],
  ['image', { disable_safety_checker: true, prompt_extend: true, response_extension: 'jpg' }],
  ['transcribe', { diarize: true, context_bias: ['x'], min_speakers: 1, vad_filter: true, task: 'transcribe' }],
  ['embed', { truncate: 'end', truncate_prompt_tokens: 9, output_dtype: 'int8', task: 'x', priority: 1 }],
  ['complete', { top_k: 4, min_p: 0.1, min_tokens: 3, stop_token_ids: [1], repetition_penalty: 2, ignore_eos: true }],
  ['speech', { sample_rate: 16_000, bit_rate: 64_000, language: 'en', emotion: 'calm' }],
  ['moderate', { metadata: { number_of_samples: '3', source: 'https://a.example' } }],
  ['image', { num_images: null, samples: false, image_url: '' }],
]

describe('a field that an operation does not know', () => {
  test.each([...multiplying, ...replacing, ...ofConversations, ...misspelt])(
    'is refused by its name where it would be sent, if the bill may depend on it: %s %j',
    async (operation, body) => {
      const edited = providersOf(operation, true)
      expect(edited.length).toBeGreaterThan(0)
      for (const provider of edited) {
        const refused = await refusal(provider, operation, body)
        expect(refused?.status, provider.slug).toBe(400)
        expect(Object.keys(body).some((name) => refused?.param?.startsWith(name))).toBe(true)
        expect(refused?.message).toContain(`'${refused?.param}'`)
      }
    },
  )

  test.each([...multiplying, ...replacing, ...misspelt.slice(0, 1)])(
    'is not refused where nothing reads it: %s %j',
    async (operation, body) => {
      for (const provider of providersOf(operation, false)) {
        expect(await refusal(provider, operation, body), provider.slug).toBeUndefined()
      }
    },
  )

  test.each(harmless)('goes on if no bill depends on it: %s %j', async (operation, body) => {
    for (const provider of providersOf(operation, true)) {
      expect((await refusal(provider, operation, body))?.param, provider.slug).toBeUndefined()
    }
  })

  test('is refused at any depth', async () => {
    expect(await paramAt('openai', 'image', { parameters: { deeper: [{ num_images: 4 }] } })).toBe(
      'parameters.deeper.num_images',
    )
    expect(await paramAt('openai', 'image', { extra_body: { n: 4 } })).toBe('extra_body.n')
    expect(await paramAt('openai', 'image', { settings: { quality: 'hd' } })).toBe('settings.quality')
  })
})

/** Fields of the published descriptions of providers that their bills depend on, and those that they do not. */
const published: readonly { file: string; path: string; operation: Operation; billed: string[] }[] = [
  {
    file: 'together.openapi.yaml',
    path: '/images/generations',
    operation: 'image',
    billed: ['height', 'image_loras', 'image_url', 'reference_images', 'steps', 'width'],
  },
  { file: 'together.openapi.yaml', path: '/audio/transcriptions', operation: 'transcribe', billed: [] },
  { file: 'together.openapi.yaml', path: '/completions', operation: 'complete', billed: ['safety_model'] },
  {
    file: 'mistral.openapi.yaml',
    path: '/v1/audio/transcriptions',
    operation: 'transcribe',
    billed: ['file_id', 'file_url'],
  },
  { file: 'mistral.openapi.yaml', path: '/v1/audio/speech', operation: 'speech', billed: ['ref_audio'] },
  { file: 'mistral.openapi.yaml', path: '/v1/embeddings', operation: 'embed', billed: [] },
  { file: 'mistral.openapi.yaml', path: '/v1/fim/completions', operation: 'complete', billed: [] },
  { file: 'openrouter.openapi.yaml', path: '/audio/speech', operation: 'speech', billed: ['input_references'] },
  { file: 'openrouter.openapi.yaml', path: '/images', operation: 'image', billed: ['input_references'] },
]

describe.skipIf(specMissing('together.openapi.yaml'))('of the fields that a provider documents', () => {
  test.each(published)('$file $path: those that are billed are refused, and no others', async (described) => {
    const { file, path, operation, billed } = described
    const [provider] = providersOf(operation, true)
    const known = new Set([...fieldNames[operation], 'model', 'provider'])
    const fields = publishedFields(file, path).filter((name) => !known.has(name))
    expect(fields.length).toBeGreaterThan(0)
    const refused: string[] = []
    for (const name of fields) if (await refusal(provider as Provider, operation, { [name]: 'x' })) refused.push(name)
    expect(refused.toSorted()).toEqual(billed)
  })
})

/** The names of the members of the body that a path takes. */
function publishedFields(file: string, path: string): string[] {
  const document = publishedSpec(file) as JsonObject
  const paths = document.paths as { [path: string]: { post: { requestBody: { content: JsonObject } } } }
  const found = new Set<string>()
  const open: Json[] = Object.values(paths[path]?.post.requestBody.content ?? {}).map(
    (content) => (content as JsonObject).schema as Json,
  )
  for (let schema = open.pop(); schema !== undefined; schema = open.pop()) {
    if (!isObject(schema)) continue
    const { $ref, properties, allOf, oneOf, anyOf } = schema
    if (typeof $ref === 'string') open.push(resolved(document, $ref))
    for (const name of Object.keys(isObject(properties) ? properties : {})) found.add(name.replace(/\[\]$/, ''))
    for (const list of [allOf, oneOf, anyOf]) if (Array.isArray(list)) open.push(...list)
  }
  return [...found]
}

function resolved(document: JsonObject, reference: string): Json {
  const steps = reference.split('/').slice(1)
  return steps.reduce<Json>((value, step) => (isObject(value) ? (value[step] ?? null) : null), document)
}

test('whatever the field, its place and its value: what has a count, a source or a size in its name is not sent', async () => {
  const edited = names.filter((name) => providersOf(name, true).length > 0)
  const word = fc.constantFrom('images', 'batch', 'num', 'samples', 'count', 'url', 'file', 'model', 'width', 'quality')
  const other = fc.constantFrom('max', 'the', 'new', 'x2', 'my')
  const name = fc
    .tuple(other, word, fc.constantFrom('snake', 'camel', 'kebab', 'upper'))
    .map(([before, last, style]) => {
      if (style === 'camel') return `${before}${last[0]?.toUpperCase()}${last.slice(1)}`
      return style === 'kebab'
        ? `${before}-${last}`
        : style === 'upper'
          ? `${before}_${last}`.toUpperCase()
          : `${before}_${last}`
    })
  const value = fc.oneof(
    fc.integer({ min: 2, max: 99 }),
    fc.constantFrom('x', 'https://a.example/x'),
    fc.constant([1, 2]),
  )
  const wrapped = fc.array(fc.constantFrom('options', 'parameters', 'config'), { maxLength: 3 })
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...edited), name, value, wrapped, async (operation, field, given, around) => {
      const body = around.reduceRight<JsonObject>((inner, step) => ({ [step]: inner }), { [field]: given as Json })
      for (const provider of providersOf(operation, true)) {
        expect((await refusal(provider, operation, body))?.status, `${provider.slug} ${JSON.stringify(body)}`).toBe(400)
      }
    }),
  )
})
