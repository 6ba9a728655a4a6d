import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import type { Json, JsonObject } from '../../src/core/json.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import type { FamilyRules } from '../../src/manifest/limits.ts'
import { type FitTo, fitRequest } from '../../src/manifest/run/fit-request.ts'
import { familyRules, targetFacts } from '../../src/manifest/target.ts'
import { slow } from '../helpers/slow.ts'
import { chatAddresses } from './addresses.ts'
import { type ContractWorld, contractWorld, plainModels, type Shipped, wireOf } from './contract-world.ts'
import { type Ask, type Client, clients, type Probe, requestIn, type Seen } from './limit-asks.ts'
import { probesOf } from './limit-probes.ts'

// Every limit that a shipped manifest declares for a family, tried from both sides: in each client API, whole and streamed.

let world: ContractWorld
const tried = new Set<string>()
const declared = new Set<string>()

beforeAll(async () => {
  world = await contractWorld()
})

afterAll(async () => {
  await world?.end()
})

/** Providers whose first family the fast suite tries. */
const sample = new Set(['openai', 'moonshot', 'groq', 'mistral'])

const title = 'takes what is inside its limits unchanged, and gets what is outside adapted or not at all'

describe.each(Object.keys(chatAddresses))('%s', (slug) => {
  test(title, slow, async () => {
    expect(await faultsOf(slug, familiesOf(shippedAs(slug)))).toEqual([])
  })
})

test.each([...sample])(`the first family of %s ${title}`, async (slug) => {
  expect(await faultsOf(slug, familiesOf(shippedAs(slug)).slice(0, 1))).toEqual([])
})

test('every declared limit was tried in some API', slow, () => {
  expect([...declared].filter((limit) => !tried.has(limit))).toEqual([])
})

test('every kind of limit and of requirement that a manifest declares has a request inside and one outside', () => {
  const families = Object.keys(chatAddresses).flatMap((slug) => familiesOf(shippedAs(slug)))
  const kinds = new Set(families.flatMap(({ fitTo: { rules } }) => [...kindsIn(rules)]))
  const probed = new Set(
    families.flatMap(({ probes }) => probes.flatMap(({ limit, outside }) => (outside ? limit : []))),
  )
  const isProbed = (kind: string) => [...probed].some((limit) => limit === kind || limit.startsWith(`${kind}.`))
  expect([...kinds].filter((kind) => !isProbed(kind))).toEqual([])
  expect(kinds.size).toBeGreaterThan(60)
})

/** The names of everything that is declared for a family, as probes have them. */
function kindsIn({ limits, editedHistory }: FamilyRules): Set<string> {
  const { mid_system: middle, ...others } = editedHistory
  const history = Object.entries(others).map(([name]) => `history.${name}`)
  const kinds = [...leafNames(limits), ...history, ...(middle === 'keep' || !middle ? [] : ['history.mid_system'])]
  // What a number becomes is not another limit.
  return new Set(kinds.filter((kind) => !kind.endsWith('.drop')))
}

function leafNames(value: unknown, path = ''): string[] {
  if (value === null || typeof value !== 'object' || Array.isArray(value) || 'test' in value) return [path]
  return Object.entries(value).flatMap(([name, member]) => leafNames(member, path === '' ? name : `${path}.${name}`))
}

function shippedAs(slug: string): Shipped {
  const shipped = world.shipped.find((one) => one.slug === slug)
  if (!shipped) throw new Error(`there is no provider ${slug}`)
  return shipped
}

/** Everything that goes wrong with the limits of families of a provider. */
async function faultsOf(slug: string, families: ReturnType<typeof familiesOf>): Promise<string[]> {
  const shipped = shippedAs(slug)
  const faults: string[] = []
  for (const { model, probes, fitTo } of families) {
    for (const probe of probes) {
      declared.add(probe.limit)
      for (const client of clients)
        for (const stream of [false, true]) {
          const fault = await faultOf(shipped, { model, probe, client, stream, fitTo })
          if (fault) faults.push(`${model}, ${probe.limit}, ${client}${stream ? ', streamed' : ''}: ${fault}`)
        }
    }
  }
  return faults
}

/** One model of each family: those of which different things are declared. */
function familiesOf(shipped: Shipped): Family[] {
  const { provider } = shipped
  const own = plainModels(shipped).filter(({ entry }) => entry.api === 'chat')
  const others = provider.models['*'] ? world.shipped.flatMap(({ models }) => models) : []
  const families = new Map<string, Family>()
  for (const { model, entry } of [...own, ...others.filter((one) => one.entry.api === 'chat')]) {
    const isListed = own.some((one) => one.model === model)
    const target = { model, ...(isListed && { entry }), ...(isListed && entry.is && { is: entry.is }) }
    const rules = familyRules(provider, target)
    const { traits } = targetFacts(provider, target)
    const key = JSON.stringify([rules, traits.efforts ?? null], (_, value) =>
      value instanceof Object && 'test' in value ? String(value.source ?? value) : value,
    )
    if (!families.has(key))
      families.set(key, { model, probes: probesOf(rules, traits), fitTo: { rules, traits, edited: false } })
  }
  return [...families.values()]
}

/** A model, the probes for everything that is declared for it, and what requests to it are fitted to. */
type Family = { model: string; probes: Probe[]; fitTo: FitTo }

type Case = Pick<Family, 'model' | 'fitTo'> & { probe: Probe; client: Client; stream: boolean }

const readers = { chat, messages, responses }

/** The neutral form of a request; undefined where the API cannot ask for it. */
function readIn(client: Client, model: string, ask: Ask): NeutralRequest | undefined {
  const body = requestIn(client, ask)?.body
  try {
    return body && readers[client].read({ ...body, model })
  } catch {
    return undefined
  }
}

/** What goes wrong in one case. Where the provider does not take the field at all there is no limit to keep. */
async function faultOf(shipped: Shipped, { model, probe, client, stream, fitTo }: Case): Promise<string | undefined> {
  const read = readIn(client, model, probe.inside)
  if (!read) return undefined
  const { changed, lost } = fitRequest(read, fitTo)
  if (changed.size > 0) return `inside is adapted: ${[...changed, ...lost]}`
  const ask = (words: Ask, name?: string) => asked(shipped, { model, client, stream, ask: words, name })
  const inside = await ask(probe.inside)
  if (!inside) return undefined
  if (inside.status !== 200) return `inside is refused: ${JSON.stringify(inside.answer)}`
  if (inside.dropped.length > 0 || !inside.seen) return undefined
  if (!probe.unchanged(inside.seen)) return `inside arrives changed: ${JSON.stringify(inside.seen.body)}`
  tried.add(probe.limit)
  if (!probe.outside) return undefined
  const outside = await ask(probe.outside, probe.clientName)
  if (!outside) return undefined
  if (outside.status === 400) return outside.seen ? 'the provider refuses' : undefined
  if (outside.status !== 200) return `outside fails: ${JSON.stringify(outside.answer)}`
  if (probe.refused) return 'outside is sent'
  if (!outside.seen || !(probe.within?.(outside.seen) ?? true))
    return `outside is sent as it is: ${JSON.stringify(outside.seen?.body)}`
  const isRenamed = probe.clientName !== undefined
  if (isRenamed && !outside.answer.includes(probe.clientName ?? ''))
    return `the client's name is lost: ${outside.answer}`
  return undefined
}

type Outcome = { status: number; dropped: string[]; answer: string; seen: Seen | undefined }

async function asked(
  shipped: Shipped,
  {
    model,
    client,
    stream,
    ask,
    name,
  }: { model: string; client: Client; stream: boolean; ask: Ask; name?: string | undefined },
): Promise<Outcome | undefined> {
  const request = requestIn(client, ask)
  if (!request) return undefined
  const wire = wireOf(shipped.provider)
  const body: JsonObject = { ...request.body, model: `${shipped.slug}/${model}`, stream }
  // A call by the name that the provider was sent.
  world.play((received) => {
    const [tool] = name === undefined ? [] : wire.read(received).tools
    return { reply: { text: 'Fine.', ...(tool && { calls: [{ id: 'a1', name: tool, arguments: {} }] }) } }
  })
  const response = await world.router.call(request.path, body)
  const answer = await response.text()
  const received = world.received()[0]
  // Some requests are better served by another API of the provider, which has limits of its own.
  const isElsewhere = received && !isOwnPath(shipped, received.path)
  const dropped = response.headers.get('x-router-dropped')?.split(/,\s*/) ?? []
  if (isElsewhere) return undefined
  return {
    status: response.status,
    dropped,
    answer,
    seen: received && { body: received.body as Json, arrived: wire.read(received.body) },
  }
}

function isOwnPath({ provider }: Shipped, path: string): boolean {
  const [own] = provider.chat?.path.split('{') ?? []
  return own === undefined || path.includes(own)
}
