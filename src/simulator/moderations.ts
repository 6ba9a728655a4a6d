import { requireCount } from './bounds.ts'
import { bodyFor, hashOf, otherModels as models, wordsOf, wrong } from './words.ts'

/** The words that put a text into a category. */
const wordsByCategory: { readonly [category: string]: readonly string[] } = {
  harassment: ['idiot', 'loser'],
  'harassment/threatening': ['beware'],
  hate: ['hate'],
  'hate/threatening': [],
  illicit: ['steal', 'forge'],
  'illicit/violent': ['bomb'],
  'self-harm': ['suicide'],
  'self-harm/intent': [],
  'self-harm/instructions': [],
  sexual: ['porn'],
  'sexual/minors': [],
  violence: ['kill', 'murder'],
  'violence/graphic': ['gore'],
}

/** What is flagged is so by its words alone. Throws SimulatedError. */
export function moderationsOf(body: unknown): object {
  const { input } = bodyFor(models.moderate, body)
  const results = inputsIn(input).map((text) => resultFor(new Set(wordsOf(text))))
  return { id: `modr-${hashOf(JSON.stringify(input)).toString(16)}`, model: models.moderate, results }
}

/** Each has a verdict in every category. */
const mostTexts = 256

/** Texts are judged one by one, parts of one input together. */
function inputsIn(input: unknown): string[] {
  if (typeof input === 'string') return [input]
  if (!Array.isArray(input) || input.length === 0) throw wrong('input', 'a string or an array that is not empty')
  requireCount(input.length, mostTexts, 'input')
  if (input.every((one) => typeof one === 'string')) return input
  return [input.map((part) => String(Object(part).text ?? '')).join('\n')]
}

function resultFor(words: ReadonlySet<string>): object {
  const found = Object.entries(wordsByCategory).map(([category, bad]) => {
    return [category, bad.some((word) => words.has(word))] as const
  })
  return {
    flagged: found.some(([, isFound]) => isFound),
    categories: Object.fromEntries(found),
    category_scores: Object.fromEntries(found.map(([category, isFound]) => [category, isFound ? 0.98 : 0.0001])),
    category_applied_input_types: Object.fromEntries(found.map(([category]) => [category, ['text']])),
  }
}
