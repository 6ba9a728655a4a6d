import { mostAnswers, requireCount } from './bounds.ts'
import { tokensOf } from './tokens.ts'
import { bodyFor, hashOf, otherModels as models, overlap, wordsOf, wrong } from './words.ts'

/** Documents by the part of the query's words that they have, the best first. Throws SimulatedError. */
export function rankingOf(body: unknown): object {
  const { query, documents, top_n: most, return_documents: withText } = bodyFor(models.rerank, body)
  if (typeof query !== 'string' || query === '') throw wrong('query', 'a string that is not empty')
  if (!Array.isArray(documents) || documents.length === 0) throw wrong('documents', 'an array that is not empty')
  const texts = documents.map((one) =>
    typeof one === 'string' ? one : String(Object(one).text ?? JSON.stringify(one)),
  )
  requireCount(documents.length, mostAnswers, 'documents')
  const words = new Set(wordsOf(query))
  const found = texts.map((text, index) => ({
    index,
    relevance_score: overlap(words, new Set(wordsOf(text))),
    ...(withText === true && { document: { text } }),
  }))
  found.sort((one, other) => other.relevance_score - one.relevance_score || one.index - other.index)
  const count = [query, ...texts].reduce((sum, text) => sum + tokensOf(text).length, 0)
  const results = typeof most === 'number' ? found.slice(0, most) : found
  const id = `rerank-${hashOf(JSON.stringify([query, texts])).toString(16)}`
  return { id, model: models.rerank, results, usage: { prompt_tokens: count, total_tokens: count } }
}
