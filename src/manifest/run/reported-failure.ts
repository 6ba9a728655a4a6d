import type { ProviderFailure } from '../../core/events.ts'
import { isObject } from '../../core/json.ts'

/** The failure that a mapping gives as `error`, whatever its shape; undefined when there is none. */
export function reportedFailureOf(error: unknown): ProviderFailure | undefined {
  if (error === undefined || error === null || error === false) return undefined
  if (typeof error === 'string') return { message: error || unspecified }
  if (!isObject(error)) return { code: String(error), message: unspecified }
  const { status, code, message, retryable } = error
  return {
    ...(typeof status === 'number' && { status }),
    ...(code !== undefined &&
      code !== null && { code: typeof code === 'object' ? JSON.stringify(code) : String(code) }),
    message: messageOf(message),
    ...(typeof retryable === 'boolean' && { retryable }),
  }
}

const unspecified = 'The provider reported an error.'

function messageOf(message: unknown): string {
  if (typeof message === 'string') return message || unspecified
  return message === undefined || message === null ? unspecified : JSON.stringify(message)
}
