import { RouterError } from '../../core/errors.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import { type Mapping, MappingError, type Variables } from '../../mapping/mapping.ts'
import type { ChatEndpoint, Provider } from '../provider.ts'

/**
 * Runs a mapping of a provider; `name` is its path in the manifest. Throws RouterError: `provider_unreadable` when it fails,
 * `invalid_request` when a client's request exhausts its bounds.
 */
export function runMapping(
  provider: Provider,
  name: string,
  mapping: Mapping,
  input: unknown,
  variables?: Variables,
): unknown | Promise<unknown> {
  try {
    const result = mapping.run(input, variables)
    return result instanceof Promise ? result.catch((error) => fail(provider, name, error, mapping)) : result
  } catch (error) {
    return fail(provider, name, error, mapping)
  }
}

/** The result of a mapping that has to be an object. Throws RouterError `provider_unreadable`. */
export function requireObject(provider: Provider, name: string, result: unknown): JsonObject {
  if (isObject(result)) return result
  const returned = result === undefined ? 'nothing' : (JSON.stringify(result) ?? typeof result).slice(0, 100)
  throw unreadable(provider, name, `returned ${returned} instead of an object`)
}

/** The mapping that failed behind a RouterError, and the position in its text; undefined for other errors. */
export function failedMapping(error: unknown): { mapping: Mapping; position: number | undefined } | undefined {
  const cause = error instanceof RouterError ? error.cause : undefined
  const mapping = cause instanceof MappingError ? mappingByError.get(cause) : undefined
  return mapping && { mapping, position: (cause as MappingError).position }
}

const mappingByError = new WeakMap<object, Mapping>()

function fail(provider: Provider, name: string, error: unknown, mapping: Mapping): never {
  if (error instanceof MappingError) {
    mappingByError.set(error, mapping)
    if (isOfRequest(name) && boundCodes.has(error.code)) throw tooMuch(provider, name, error)
  }
  throw unreadable(provider, name, `failed: ${(error as Error).message}`, error)
}

/** Steps, depth, and the sizes of lists and texts: what a mapping takes of them depends on its input. */
const boundCodes: ReadonlySet<string> = new Set(['D1011', 'D1012', 'D1014', 'D1015', 'D2015'])

/** Checks whether a mapping failed because it took too many steps, or made too much: to run it again would cost as much. */
export function isExhausted(error: unknown): boolean {
  const cause = error instanceof RouterError ? error.cause : undefined
  return cause instanceof MappingError && boundCodes.has(cause.code)
}

/** The error for a request that exhausts what one run of a mapping may take: no provider was asked. */
function tooMuch({ slug }: Provider, name: string, error: MappingError): RouterError {
  const reason = error.message.replace(/\.$/, '')
  const message = `The request is too large to be translated for ${slug}: the mapping \`${name}\` stopped: ${reason}. Send fewer or shorter parts.`
  return new RouterError('invalid_request', message, { cause: error })
}

function isOfRequest(name: string): boolean {
  return name.endsWith('request') || name.startsWith('unsupported.')
}

/** The error for a mapping that cannot make sense of its input. */
export function unreadable({ slug }: Provider, name: string, problem: string, cause?: unknown): RouterError {
  const task = isOfRequest(name)
    ? `The request could not be translated for ${slug}`
    : `The response of ${slug} could not be read`
  const message = `${task}: the mapping \`${name}\` ${problem.replace(/\.$/, '')}.`
  return new RouterError('provider_unreadable', message, { provider: slug, ...(cause !== undefined && { cause }) })
}

/** The chat endpoint of a provider. Throws RouterError `model_not_found` when it has none. */
export function chatEndpoint(provider: Provider): ChatEndpoint {
  if (!provider.chat) throw new RouterError('model_not_found', `The provider '${provider.slug}' has no chat models.`)
  return provider.chat
}
