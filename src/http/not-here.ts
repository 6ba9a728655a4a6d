import { RouterError } from '../core/errors.ts'
import type { Request } from './app.ts'

/** Returns the error for a path that does not exist, with the path or the API that its client may have meant. */
export function notHere({ method, path }: Pick<Request, 'method' | 'path'>, paths?: ReadonlySet<string>): RouterError {
  const hint = hintFor(path, paths)
  return new RouterError('not_found', `There is no ${method} ${path} here.${hint === undefined ? '' : ` ${hint}`}`)
}

/** Checks whether a path is one of Gemini's API, which appends the method to the model. */
export function isGeminiPath(path: string): boolean {
  return /:(streamGenerateContent|generateContent|countTokens|batchEmbedContents|embedContent|predict)$/.test(path)
}

function hintFor(path: string, paths?: ReadonlySet<string>): string | undefined {
  if (paths?.has(`/v1${path}`)) return `Add /v1 to the base URL of the client: it is ${`/v1${path}`}.`
  const [, below] = /^(?:\/openai)?\/v1(\/.*)$/.exec(path) ?? []
  if (below !== undefined && paths?.has(below)) return `Shorten the base URL of the client: it is ${below}.`
  if (below !== undefined && path !== `/v1${below}` && paths?.has(`/v1${below}`))
    return `Shorten the base URL of the client: it is /v1${below}.`
  const [name] = apis.find(([, pattern]) => pattern.test(path)) ?? []
  if (name === undefined && !isGeminiPath(path)) return undefined
  return `This server does not speak ${name ?? "Gemini's API"}, but Chat Completions, Responses and Messages: /v1/chat/completions, /v1/responses, /v1/messages.`
}

/** APIs that clients ask for in vain, and the beginning of their paths. */
const apis: readonly [name: string, pattern: RegExp][] = [
  ["Gemini's API", /^\/v1(beta|alpha)\//],
  ["Cohere's API", /^\/v2\//],
  ["Ollama's API", /^\/api\/(chat|generate|embed|embeddings|tags|show|ps|version)$/],
  ["Bedrock's API", /^\/model\/[^/]+\/(converse|invoke)/],
  ["Azure's API of deployments", /^\/openai\/deployments\//],
]
