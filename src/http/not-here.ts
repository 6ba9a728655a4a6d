import { RouterError } from '../core/errors.ts'
import { nearest } from '../manifest/check/did-you-mean.ts'
import type { Request } from './app.ts'

/** Returns the error for a path that does not exist, with the path or the API that its client may have meant. */
export function notHere({ method, path }: Pick<Request, 'method' | 'path'>, paths?: ReadonlySet<string>): RouterError {
  const hint = hintFor(path, paths)
  const written = path.length > maxShown ? `${path.slice(0, maxShown)}…` : path
  return new RouterError('not_found', `There is no ${method} ${written} here.${hint === undefined ? '' : ` ${hint}`}`)
}

/** Checks whether a path is one of Gemini's API, which appends the method to the model. */
export function isGeminiPath(path: string): boolean {
  return /:(streamGenerateContent|generateContent|countTokens|batchEmbedContents|embedContent|predict)$/.test(path)
}

function hintFor(path: string, paths: ReadonlySet<string> = new Set()): string | undefined {
  const steps = path.split('/', maxSteps + 2).filter((step) => step !== '')
  const isShort = steps.length <= maxSteps && path.length <= maxCompared
  const whole = `/${steps.join('/')}`
  if (isShort && paths.has(`/v1${whole}`)) return `Add /v1 to the base URL of the client: it is /v1${whole}.`
  if (steps.length === 0 || whole === '/v1') return `The endpoints for chat are ${chatPaths}.`
  const [name] = apis.find(([, pattern]) => pattern.test(path)) ?? []
  if (name !== undefined || isGeminiPath(path))
    return `This server does not speak ${name ?? "Gemini's API"}, but ${spoken}.`
  if (!isShort) return undefined
  const known = endOf(steps, paths)
  if (known !== undefined) return `Shorten the base URL of the client: it is ${known}.`
  if (/^\/v1\/v1\//.test(whole)) return `Shorten the base URL of the client: it is ${whole.slice('/v1'.length)}.`
  const fixed = [...paths].filter((known) => !/[:*]/.test(known))
  const similar = nearest(whole, fixed, maxTypos) ?? nearest(`/v1${whole}`, fixed, maxTypos)
  return similar === undefined ? undefined : `Did you mean ${similar}?`
}

/** Returns the longest end of a path that is a path of this server, with `/v1` before it or without. */
function endOf(steps: readonly string[], paths: ReadonlySet<string>): string | undefined {
  const ends = steps.map((_, index) => `/${steps.slice(index).join('/')}`)
  return ends.flatMap((end) => [end, `/v1${end}`]).find((end) => paths.has(end))
}

/** Maximum number of steps of a path that is compared with others: no endpoint has more than seven, with repetitions. */
const maxSteps = 12
/** Maximum length of a path that is compared with others. Characters. */
const maxCompared = 120
/** Maximum number of letters by which a mistyped path differs from the one that is meant. */
const maxTypos = 2
/** Maximum length of a path in a message. Characters. */
const maxShown = 200

const chatPaths = '/v1/chat/completions, /v1/responses and /v1/messages'
const spoken = 'Chat Completions, Responses and Messages: /v1/chat/completions, /v1/responses, /v1/messages'

/** APIs that clients ask for in vain, and the beginning of their paths. */
const apis: readonly [name: string, pattern: RegExp][] = [
  ["Gemini's API", /^\/v1(beta|alpha)\//],
  ["Cohere's API", /^\/v2\//],
  ["Ollama's API", /^\/api\/(chat|generate|embed|embeddings|tags|show|ps|version)$/],
  ["Bedrock's API", /^\/model\/[^/]+\/(converse|invoke)/],
  ["Azure's API of deployments", /^\/openai\/deployments\//],
]
