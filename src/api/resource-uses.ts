import { isObject, type Json, type JsonObject } from '../core/json.ts'
import type { ReasoningPart } from '../core/parts.ts'
import type { NeutralRequest } from '../core/request.ts'

/**
 * The use of something that an account at a provider keeps: where the request names it, and by which id. `signer` where only the provider
 * of that name is sent the id, in items of the Responses format.
 */
export type ResourceUse = { path: string; id: string; signer?: string }

/** Nouns for what accounts keep, as the first part of the names of fields. */
const kinds = [
  'file',
  'input_file',
  'output_file',
  'training_file',
  'validation_file',
  'vector_store',
  'file_search_store',
].concat(
  [
    'skill',
    'voice',
    'agent',
    'assistant',
    'connector',
    'tunnel',
    'knowledge',
    'knowledge_base',
    'collection',
    'dataset',
  ],
  [
    'library',
    'conversation',
    'prompt',
    'prompt_template',
    'template',
    'container',
    'cached_content',
    'cache',
    'corpus',
  ],
  [
    'rag_corpus',
    'data_store',
    'data_source',
    'adapter',
    'lora',
    'lora_adapter',
    'index',
    'video',
    'audio',
    'image',
    'batch',
  ],
  [
    'upload',
    'eval',
    'checkpoint',
    'guardrail',
    'preset',
    'previous_message',
    'thread',
    'store',
    'context',
    'memory',
    'memory_store',
  ],
  ['dictionary', 'pronunciation_dictionary', 'voice_clone', 'speaker_profile', 'artifact', 'playbook', 'workflow'],
)

/** Fields that name such things in other words. */
const others = [
  'file_uri',
  'cached_content',
  'rag_corpus',
  'datastore',
  'data_store',
  'index_name',
  'lora_name',
  'adapter',
].concat(
  ['adapter_name', 'file_search_store_names', 'guardrail_identifier', 'prompt_identifier', 'knowledge_base_name'],
  ['vector_stores', 'knowledge_bases', 'collections', 'libraries', 'connectors', 'rag_corpora', 'data_stores'],
)

const endings = ['id', 'ids', 'arn', 'arns', 'uri', 'uris', 'uuid', 'uuids']

const names: ReadonlySet<string> = new Set(
  [...kinds.flatMap((kind) => endings.map((ending) => `${kind}_${ending}`)), ...others].flatMap((name) => [
    name,
    folded(name),
  ]),
)

/** Members whose objects have an `id` of their own that names such a thing. */
const holders: ReadonlySet<string> = new Set(['audio', 'voice'])

/** Names in other cases than the usual one: some providers read them in any. */
const unusual = /[^a-z0-9_]/

/** Returns a name as providers read it that ignore case; of a field of a form, its last step. */
function folded(name: string): string {
  const step = /\[([^[\]]+)\](?:\[\])*$/.exec(name)?.[1] ?? name
  return step
    .replace(/[\s_[\]-]+/g, '')
    .toUpperCase()
    .toLowerCase()
}

/** Checks whether a member of this name names something that an account keeps. */
export function namesResource(name: string): boolean {
  return names.has(name) || (unusual.test(name) && names.has(folded(name)))
}

/** Addresses that a provider opens with the credentials of the account. */
const accountAddress =
  /^\s*(?:(?:gs|s3|oss|tos|cos|wasbs?|abfss?|azureml|fileid):\/\/|(?:https?:)?\/\/[a-z-]{0,64}generativelanguage\.googleapis\.com\b)/i

/** Members that are words for the model, so that an address in them is only mentioned. */
const words: ReadonlySet<string> = new Set(
  [
    'text',
    'content',
    'input',
    'instructions',
    'prompt',
    'system',
    'arguments',
    'output',
    'thinking',
    'query',
    'documents',
  ].concat([
    'description',
    'title',
    'name',
    'refusal',
    'transcript',
    'code',
    'stdout',
    'stderr',
    'user',
    'suffix',
    'source',
    'filename',
  ]),
)

/** Members at the top of any shape that clients choose: a provider reads no fields in them, or only compares what it has cached. */
const freeAtTop: ReadonlySet<string> = new Set(['metadata', 'client_metadata', 'diagnostics', 'requesty', 'logit_bias'])

/** The same below the top, of clients and models. */
const freeForm: ReadonlySet<string> = new Set([
  'metadata',
  'requesty',
  'logit_bias',
  'input_schema',
  'input_examples',
  'schema',
  'arguments',
  'attributes',
  'variables',
  'json_schema',
])

/** Kinds of blocks whose `input` is what a model wrote. */
const calls = /tool_use$/

/**
 * Finds what a body names that an account keeps, at any depth, and what the blocks in a request name that only one provider reads.
 * `isFreeForm` are further members at the top that clients fill as they like.
 */
export function resourceUses(body: JsonObject, isFreeForm: (name: string) => boolean = () => false): ResourceUse[] {
  const walk: Walk = { uses: [], path: [] }
  for (const name in body) if (!isFreeForm(name)) visitMember(body, name, walk)
  return walk.uses
}

/** Finds what the parts of a conversation name that are not in the words of the client's API. */
export function resourceUsesInParts({ messages }: Pick<NeutralRequest, 'messages'>, path: string): ResourceUse[] {
  const walk: Walk = { uses: [], path: [path] }
  for (const { parts } of messages) {
    for (const part of parts) {
      if (part.type === 'opaque') visit(part.body, walk)
      else if (part.type === 'search' && part.results !== undefined) visit(part.results, walk)
      else if (part.type === 'reasoning' && isReferenceById(part)) {
        walk.uses.push({ path: `${path}.id`, id: part.id, signer: part.by })
      }
    }
  }
  return walk.uses
}

/** Checks whether a provider may look up the contents of a reasoning by its id, wherever the client had it from. */
function isReferenceById(part: ReasoningPart): part is ReasoningPart & { id: string; by: string } {
  const { id, by, encrypted } = part
  return id !== undefined && by !== undefined && !encrypted
}

type Walk = { uses: ResourceUse[]; path: string[] }

function visit(value: Json | undefined, walk: Walk): void {
  if (Array.isArray(value)) for (const item of value) visit(item, walk)
  else if (isObject(value)) visitObject(value, walk)
}

function visitObject(object: JsonObject, walk: Walk): void {
  for (const name in object) visitMember(object, name, walk)
  if (typeof object.id === 'string' && isReferenceByItem(object)) add(object.id, 'id', walk)
}

function visitMember(object: JsonObject, name: string, walk: Walk): void {
  const value = object[name]
  if (value === null || value === undefined || typeof value === 'boolean') return
  if (namesResource(name) && !isPublic(name, value, object)) addAll(value, name, walk)
  if (typeof value === 'string') {
    if (words.has(name)) addFilesInText(value, name, walk)
    else if (value.length <= maxAddress && accountAddress.test(value)) add(value, name, walk)
  } else if (typeof value === 'object' && !(walk.path.length === 0 ? freeAtTop.has(name) : isUnread(object, name))) {
    walk.path.push(name)
    if (holders.has(name) && isObject(value)) addAll(value.id, 'id', walk)
    if (Array.isArray(value) && !words.has(name)) addAddresses(value, walk)
    visit(value, walk)
    walk.path.pop()
  }
}

/** Checks whether a provider reads no fields in a member below the top, where no `type` says how a body is read. */
function isUnread(object: JsonObject, name: string): boolean {
  if (freeForm.has(name)) return true
  if (name === 'input') return typeof object.type === 'string' && calls.test(object.type)
  // The schema of a function. Tools of providers have settings in a member of that name.
  return name === 'parameters' && (object.type === undefined || object.type === 'function' || object.type === 'custom')
}

/** Items whose contents a provider looks up by their id where they have none. */
export function isReferenceByItem({ type, encrypted_content, result }: JsonObject): boolean {
  if (type === 'reasoning') return typeof encrypted_content !== 'string' || encrypted_content === ''
  return type === 'image_generation_call' && (typeof result !== 'string' || result === '')
}

/** The type of a skill that its vendor offers everybody, in the words of the Messages API. */
const vendorSkills = /^anthropic$/

/** Checks whether a vendor offers everybody what an id names. */
function isPublic(name: string, value: Json, { type }: JsonObject): boolean {
  if (name === 'skill_id')
    return vendorSkills.test(String(type)) || (typeof value === 'string' && value.startsWith('openai-'))
  return name === 'connector_id' && typeof value === 'string' && value.startsWith('connector_')
}

/** Adds the files that a text consists of: some models read `fileid://…,fileid://…` in place of a text. */
function addFilesInText(text: string, name: string, walk: Walk): void {
  if (!/^\s*fileid:\/\//i.test(text.slice(0, maxAddress))) return
  for (const id of text.split(',')) add(id.trim(), name, walk)
}

function addAddresses(values: readonly Json[], walk: Walk): void {
  for (const value of values) {
    if (typeof value !== 'string' || value.length > maxAddress || !accountAddress.test(value)) continue
    walk.uses.push({ path: walk.path.join('.'), id: value })
  }
}

/** Adds an id, a list of them, or an object with one. */
function addAll(value: Json | undefined, name: string, walk: Walk): void {
  if (Array.isArray(value)) for (const item of value) addAll(item, name, walk)
  else if (isObject(value)) addAll(value.id, name, walk)
  else if (typeof value === 'string' || typeof value === 'number') add(String(value), name, walk)
}

function add(id: string, name: string, { uses, path }: Walk): void {
  if (id !== '') uses.push({ path: [...path, name].join('.'), id })
}

/** Characters that an address has at most; longer texts are data. */
const maxAddress = 4_096
