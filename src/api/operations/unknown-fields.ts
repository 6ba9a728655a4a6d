import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { Operation } from '../../core/operation.ts'
import {
  asksForSomething,
  folded,
  type RestrictedField,
  type RestrictedSearch,
  type RestrictedUse,
  restrictedFields,
  searchOf,
} from '../restricted-fields.ts'
import { routerFields } from '../router-fields.ts'
import { fieldNames } from './field-names.ts'

/**
 * A kind of fields by which providers bill more than the fields of an API say. A field is of the kind if one of the words of its name is
 * among `words`, or the last one is among `ends`: `numImages` has the words num and images.
 */
type Kind = Pick<RestrictedField, 'effect' | 'instead'> & { words?: ReadonlySet<string>; ends?: ReadonlySet<string> }

const kinds: readonly Kind[] = [
  {
    effect: 'cost',
    instead: 'it may multiply what the call costs',
    words: wordsOf(
      'num number count counts batch batches samples images outputs candidates variations variants copies quantity',
      'iter iters iterations repeat repeats repetitions generations sequential seeds steps upscale upscaling best',
    ),
    ends: wordsOf('n'),
  },
  {
    effect: 'cost',
    instead: 'it may raise the price: ask for the size and the quality in the fields of this API',
    ends: wordsOf('size width height resolution pixels megapixels quality tier hd duration seconds fps frames factor'),
  },
  {
    effect: 'cost',
    instead: 'send what is to be worked on in the fields of this API',
    words: wordsOf('url urls uri uris file files upload uploads asset assets attachment attachments'),
    ends: wordsOf(
      'link href path src source sources reference references ref refs audio image video videos media',
      'document documents query queries input inputs text texts content contents data base64 b64 bytes blob',
      'prompt prompts embeds embedding embeddings messages state',
    ),
  },
  {
    effect: 'server',
    instead: 'call the model that is meant',
    words: wordsOf('model models engine lora loras adapter adapters checkpoint'),
  },
  { effect: 'state', instead: 'the answer comes with the call', words: wordsOf('webhook webhooks callback callbacks') },
]

/** Fields that cost nothing whatever is in them: what must not be drawn, and notes of the caller. */
const harmless: ReadonlySet<string> = new Set(['negative_prompt', 'metadata'])
/** Words after the one that says what a field is: a `file_id` is a file. */
const endings: ReadonlySet<string> = new Set(['id', 'ids', 'list'])

function wordsOf(...lines: string[]): ReadonlySet<string> {
  return new Set(lines.flatMap((line) => line.split(' ')))
}

/**
 * Returns a search in what an operation does not know of a body, for a provider of this slug with the fields that its manifest adds:
 * restricted fields of any API, names that are those of the operation except for their case, fields of a kind that is billed, and
 * addresses. At any depth, since providers have members in which they put their own.
 */
export function unknownFieldSearch(
  operation: Operation,
  slug: string,
  added: readonly RestrictedField[],
): RestrictedSearch {
  const known: ReadonlySet<string> = new Set(['model', ...fieldNames[operation], ...routerFields])
  const restricted = new Map<string, RestrictedField>()
  for (const field of restrictedFields) {
    const { name, apis, rule } = field
    const isOfChat = apis?.includes('chat') ?? true
    if (known.has(name) || (restricted.has(name) && !isOfChat)) continue
    // What the API of conversations reads, nothing reads here.
    const isKept = rule === 'priced' || (rule === 'refuse' && isOfChat)
    restricted.set(name, { ...field, rule: isKept ? rule : 'edited' })
  }
  const search = searchOf([...restricted.values(), ...added], slug)
  const meant = new Map([...known].map((name) => [folded(name), name]))
  return (body) => {
    const uses = search(body)
    const found = new Set(uses.map(({ path }) => path))
    for (const use of usesIn(body, meant)) if (!found.has(use.path)) uses.push(use)
    return uses
  }
}

/** Finds the fields of a billed kind, and the names that are written in another way. */
function usesIn(body: JsonObject, meant: ReadonlyMap<string, string>): RestrictedUse[] {
  const uses: RestrictedUse[] = []
  const open: [path: string, name: string, value: Json][] = Object.entries(body).map(([name, value]) => [
    name,
    name,
    value as Json,
  ])
  for (let next = open.pop(); next; next = open.pop()) {
    const [path, name, value] = next
    if (!asksForSomething(value) || harmless.has(folded(name))) continue
    const field = fieldOf(name, value, meant)
    if (field) uses.push({ field, path, value })
    else if (Array.isArray(value)) {
      // Most items are texts or numbers, and only what they say may matter.
      for (const item of value) if (isOpen(item)) open.push([path, '', item])
    } else if (isObject(value)) {
      for (const [member, inner] of Object.entries(value)) open.push([`${path}.${member}`, member, inner as Json])
    }
  }
  return uses
}

function fieldOf(name: string, value: Json, meant: ReadonlyMap<string, string>): RestrictedField | undefined {
  const rule = 'edited'
  const other = meant.get(folded(name))
  if (other !== undefined) return { name, effect: 'cost', rule, instead: `write \`${other}\` at the top of the body` }
  const kind = kindOf(name)
  if (kind) return { name, effect: kind.effect, rule, ...(kind.instead !== undefined && { instead: kind.instead }) }
  return isAddress(value)
    ? { name, effect: 'cost', rule, instead: 'an address in it may be what the provider works on' }
    : undefined
}

/** Checks whether an item of a list may have something to find in it. */
function isOpen(item: Json): boolean {
  return typeof item === 'string' ? isAddress(item) : typeof item === 'object'
}

function isAddress(value: Json): boolean {
  return typeof value === 'string' && (value.includes('://') || data.test(value.slice(0, 64)))
}

function kindOf(name: string): Kind | undefined {
  const words = name
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean)
  const last = words.findLast((word) => !endings.has(word)) ?? ''
  return kinds.find(({ words: any, ends }) => ends?.has(last) || (any && words.some((word) => any.has(word))))
}

const data = /^\s*data:/i
