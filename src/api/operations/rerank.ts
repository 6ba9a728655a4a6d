import { RouterError } from '../../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { ModelEntry } from '../../core/models/model.ts'
import type { OperationRequest } from '../../core/operation.ts'
import {
  type Check,
  fieldsOf,
  filledText,
  flag,
  integer,
  list,
  listOf,
  object,
  refuse,
  required,
  text,
} from '../check.ts'
import type { OperationApi, OperationFacts } from '../operation-api.ts'
import { jsonOf, promptCounts, readFields, tokensOfText, unreadableReply, usageBlock } from './shared.ts'

/** Documents by how well they answer a query, in the form that Cohere and Jina share. */
export const rerank: OperationApi = {
  operation: 'rerank',
  json: true,
  read(body) {
    const json = jsonOf(body)
    const query = required(json.query, 'query', 'a string', filledText)
    const documents = required(
      json.documents,
      'documents',
      'a list of strings, or of objects with a text',
      readDocuments,
    )
    const fields = { query, documents, ...fieldsOf<JsonObject>(json, optionalFields) }
    return readFields('rerank', json, { fields, stream: false })
  },
  wants: () => 'json',
  checkModel({ fields }, { max_inputs: most = Number.POSITIVE_INFINITY }) {
    const { length } = textsOf(fields.documents)
    if (length <= most) return
    const message = `'documents' must be at most ${most} for this model, not ${length}.`
    throw new RouterError('invalid_request', message, { param: 'documents' })
  },
  maxUsage: (request, entry) => ({
    input: tokensBy(request, maxTokensOf),
    queries: queriesBy(request, entry, maxTokensOf),
  }),
  texts: textsRead,
  count: (request, _, entry) => ({ queries: queriesBy(request, entry, tokensOfText) }),
  estimate: (request) => ({ input: tokensBy(request, tokensOfText) }),
  check: (reply, { fields: { documents } }) => void ranked(reply, textsOf(documents).length),
  write,
}

const optionalFields = [
  ['top_n', integer(1)],
  ['return_documents', flag],
  ['max_tokens_per_doc', integer(1)],
  ['rank_fields', listOf(text)],
] as const

const readDocuments: Check<Json[]> = (value, path) => {
  const documents = list(value, path)
  if (documents.length === 0) refuse(path, 'a list that is not empty', value)
  return documents.map((document, index) => readDocument(document, `${path}[${index}]`))
}

const readDocument: Check<Json> = (value, path) => {
  if (typeof value === 'string') return text(value, path)
  const document = object(value, path)
  required(document.text, `${path}.text`, 'a string', text)
  return document
}

function textsOf(documents: Json | undefined): string[] {
  if (!Array.isArray(documents)) return []
  return documents.map((document) => String(isObject(document) ? document.text : document))
}

function maxTokensOf(text: string): number {
  return Buffer.byteLength(text) + 8
}

/** The query is read with each document, and measured once: there may be many. */
function tokensBy({ fields }: OperationRequest, measure: (text: string) => number): number {
  const documents = textsOf(fields.documents)
  return documents.reduce((sum, text) => sum + measure(text), documents.length * measure(String(fields.query)))
}

/** Returns the texts that are read, the query with each document; undefined where they are too long together to be counted. */
function textsRead({ fields }: OperationRequest): string[] | undefined {
  const [query, documents] = [String(fields.query), textsOf(fields.documents)]
  return query.length * documents.length > maxCounted ? undefined : documents.flatMap((text) => [query, text])
}

/** Characters of copies of a query. */
const maxCounted = 10_000_000

/** Returns the number of queries billed: one for each hundred documents or part thereof. */
function queriesFor(documents: number): number {
  return Math.ceil(documents / 100)
}

/**
 * Returns the number of queries billed if the texts have so many tokens. A document longer than 500 tokens together with the query counts
 * as several; of a very long one as much is read as the model can, or as is asked for.
 */
function queriesBy(
  { fields }: OperationRequest,
  entry: ModelEntry | undefined,
  measure: (text: string) => number,
): number {
  const { query, documents, max_tokens_per_doc: read } = fields
  const longest = typeof read === 'number' ? read : Math.max(entry?.context_window ?? 0, usualLength)
  const room = tokensTogether - Math.min(measure(String(query)), tokensTogether / 2)
  const pieces = textsOf(documents).map((text) => Math.max(Math.ceil(Math.min(measure(text), longest) / room), 1))
  return queriesFor(pieces.reduce((sum, count) => sum + count, 0))
}

/** Tokens that a document and its query have together, and that are read of a document where nothing is stated. */
const tokensTogether = 500
const usualLength = 4_096

function write(reply: JsonObject, facts: OperationFacts): JsonObject {
  const { usage, request } = facts
  const { top_n: most, documents, return_documents: returned } = request.fields
  const given = Array.isArray(documents) ? documents : []
  const results = ranked(reply, given.length)
    .slice(0, typeof most === 'number' ? most : given.length)
    .map(({ index, relevance_score }) => ({
      index,
      relevance_score,
      ...(returned === true && { document: documentOf(given[index]) }),
    }))
  const { results: _, model: __, usage: ___, meta, ...others } = reply
  const units = usage.queries === undefined ? {} : { search_units: usage.queries }
  const counted = { billed_units: units, ...(isObject(meta) && meta) }
  return {
    id: facts.id,
    ...others,
    model: facts.model,
    results,
    meta: counted,
    usage: usageBlock(facts, promptCounts),
  }
}

type Ranked = { index: number; relevance_score: number }

/** Ranks the results, the best first. Throws RouterError for results that do not match so many documents. */
function ranked({ results }: JsonObject, documents: number): Ranked[] {
  if (!Array.isArray(results) || results.length === 0) throw unreadableReply('no list of results')
  const seen = new Set<number>()
  for (const result of results) {
    if (!isRanked(result) || result.index >= documents || seen.has(result.index)) {
      throw unreadableReply('results for documents that were not sent')
    }
    seen.add(result.index)
  }
  return (results as Ranked[]).toSorted((one, other) => other.relevance_score - one.relevance_score)
}

function isRanked(result: Json): result is Ranked {
  if (!isObject(result)) return false
  const { index, relevance_score: score } = result
  return Number.isInteger(index) && (index as number) >= 0 && typeof score === 'number'
}

function documentOf(document: Json | undefined): Json {
  return isObject(document) ? document : { text: document ?? '' }
}
