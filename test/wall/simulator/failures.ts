import type { Failure } from './format.ts'

const invalid = 'invalid_request_error'

export const contextLength: Failure = {
  status: 400,
  code: 'context_length_exceeded',
  type: invalid,
  message: "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
  elsewhere: { message: 'prompt is too long: 9000 tokens > 8192 maximum' },
}

export const contentPolicy: Failure = {
  status: 400,
  code: 'content_policy_violation',
  type: invalid,
  message: 'Your request was rejected as a result of our safety system.',
  elsewhere: { message: 'Output blocked by content filtering policy' },
}

export const noPrefill: Failure = {
  status: 400,
  code: 'invalid_value',
  type: invalid,
  message: 'This model does not support assistant message prefill. The conversation must end with a user message.',
}

export const usedUp: Failure = {
  status: 429,
  code: 'insufficient_quota',
  type: invalid,
  message: 'You exceeded your current quota, please check your plan and billing details.',
  elsewhere: { status: 400, message: 'You have reached your specified API usage limits.' },
}

export const overloaded: Failure = {
  status: 529,
  code: 'overloaded',
  type: 'overloaded_error',
  message: 'Overloaded',
}

const byStatus: { [status: number]: Omit<Failure, 'status' | 'message'> & { message: string } } = {
  400: { code: 'invalid_value', type: invalid, message: "Invalid value for 'messages'." },
  401: { code: 'invalid_api_key', type: 'authentication_error', message: 'Incorrect API key provided.' },
  402: { code: 'insufficient_quota', type: 'billing_error', message: 'Payment is required.' },
  403: { code: 'permission_denied', type: 'permission_error', message: 'Your project has no access to this model.' },
  404: { code: 'model_not_found', type: 'not_found_error', message: 'The model does not exist.' },
  408: { code: 'timeout', type: 'timeout_error', message: 'The request timed out.' },
  413: { code: 'request_too_large', type: 'request_too_large', message: 'The request is too large.' },
  429: { code: 'rate_limit_exceeded', type: 'rate_limit_error', message: 'Rate limit reached, try again later.' },
  529: overloaded,
}

/** The error of a status. */
export function failureOf(status: number): Failure {
  const known = byStatus[status]
  if (known) return { ...known, status }
  if (status < 400) return { status, code: 'moved', type: invalid, message: 'Moved.' }
  return { status, code: 'server_error', type: 'api_error', message: `The server failed with ${status}.` }
}
